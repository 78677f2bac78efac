# Writes the blocks of commands of a document, those of one kind ("sh", "sh external"), each to a file of a folder named by its line: FOLDER/0042.sh. A comment
# <!-- engine test: NAME --> above a block is put into FOLDER/0042.before.
# awk -v kind="sh" -v folder=F -f blocks.awk docs/operating.md
/^<!-- engine test: / { before = $4; next }
/^```/ {
	if (open) { open = 0; close(file); next }
	open = 1
	wanted = $0 == "```" kind
	file = sprintf("%s/%04d.sh", folder, NR + 1)
	if (wanted && before) { print before > sprintf("%s/%04d.before", folder, NR + 1) }
	before = ""
	next
}
open && wanted { print > file }
