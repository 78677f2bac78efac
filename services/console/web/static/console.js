// Copies what a button stands beside. Pages do without: a browser that runs no script shows no button.
document.documentElement.classList.add("copies");
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const field = document.createElement("textarea"); // also where the page does not come by https
  field.value = button.dataset.copy;
  button.after(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  button.textContent = copied ? "✓" : "✗";
  button.focus();
});
