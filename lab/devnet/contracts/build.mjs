// Compiles src/*.sol into artifacts/<Contract>.json (ABI and creation bytecode), which the Go package embeds. What comes out
// otherwise with the files of src/v2.2b in place of those of the same name is artifacts/<Contract>.v2.2b.json beside it.
//
//   node build.mjs          writes the artifacts
//   node build.mjs --check  writes nothing; exits 1 if the committed artifacts are not what the sources compile to
//
// The compiler is pinned in package.json, and the output depends on the sources alone (no metadata hash).
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const sourceDir = join(here, "src");
const artifactDir = join(here, "artifacts");

// What is deployed, or called by its ABI alone. Libraries with public functions are deployed for those that call them; everything else is
// compiled into these.
const published = [
  "AdlHandler",
  "CallbackCounter",
  "Config",
  "DataStore",
  "DepositHandler",
  "DevnetOracleProvider",
  "Errors",
  "EventEmitter",
  "ExchangeRouter",
  "GlvDepositHandler",
  "GlvFactory",
  "GlvShiftHandler",
  "GlvToken",
  "GlvWithdrawalHandler",
  "GasBurner",
  "LiquidationHandler",
  "MarketFactory",
  "MarketToken",
  "MintableToken",
  "Oracle",
  "OrderBook",
  "OrderHandler",
  "PoolBook",
  "PositionBook",
  "Reader",
  "RequestVault",
  "RoleStore",
  "Router",
  "ShiftHandler",
  "StaticOracleProvider",
  "SwapHandler",
  "WithdrawalHandler",
];

// EIP-170: code above this size cannot be deployed.
const maxCodeBytes = 24576;

function loadCompiler() {
  const require = createRequire(import.meta.url);
  try {
    return require("solc");
  } catch {
    fail(`the Solidity compiler is missing: run "npm ci" in ${here}`);
  }
}

// The version whose sources stand in for those of today's.
const former = "v2.2b";

function compile(...folders) {
  const sources = {};
  for (const folder of folders) {
    for (const file of readdirSync(folder).filter((name) => name.endsWith(".sol")).sort()) {
      sources[file] = { content: readFileSync(join(folder, file), "utf8") };
    }
  }
  const input = {
    language: "Solidity",
    sources,
    settings: {
      evmVersion: "london",
      optimizer: { enabled: true, runs: 200 },
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.bytecode.linkReferences", "evm.deployedBytecode.object"] } },
    },
  };
  const resolve = (path) => {
    const file = path.replace(/^\.\//, "");
    return file in sources ? { contents: sources[file].content } : { error: `no such source: ${path}` };
  };
  const output = JSON.parse(loadCompiler().compile(JSON.stringify(input), { import: resolve }));
  const problems = output.errors ?? [];
  if (problems.length > 0) {
    fail(problems.map((problem) => problem.formattedMessage).join("\n"));
  }
  return output.contracts;
}

// The libraries that a contract calls, each with the placeholder that stands for its address in the code.
function links(evm) {
  const code = evm.bytecode.object;
  const found = {};
  for (const libraries of Object.values(evm.bytecode.linkReferences)) {
    for (const [library, [place]] of Object.entries(libraries)) {
      found[library] = code.slice(2 * place.start, 2 * (place.start + place.length));
    }
  }
  return found;
}

function artifacts(contracts) {
  const files = new Map();
  // Libraries follow from the contracts that call them: the list grows while it is walked.
  const names = [...published];
  for (const name of names) {
    const contract = contracts[`${name}.sol`]?.[name];
    if (!contract) fail(`src/${name}.sol has no contract ${name}`);
    const libraries = links(contract.evm);
    for (const library of Object.keys(libraries)) if (!names.includes(library)) names.push(library);
    const size = contract.evm.deployedBytecode.object.length / 2;
    if (size > maxCodeBytes) fail(`${name} has ${size} bytes of code, more than the ${maxCodeBytes} a chain accepts`);
    if (process.argv.includes("--sizes")) console.log(name, size);
    const artifact = { contract: name, abi: contract.abi, libraries, bytecode: "0x" + contract.evm.bytecode.object };
    files.set(`${name}.json`, JSON.stringify(artifact, null, 1) + "\n");
  }
  return files;
}

function check(files) {
  const committed = existsSync(artifactDir) ? readdirSync(artifactDir) : [];
  const stale = [...files].filter(([name, text]) => {
    const path = join(artifactDir, name);
    return !existsSync(path) || readFileSync(path, "utf8") !== text;
  });
  const wrong = [...stale.map(([name]) => name), ...committed.filter((name) => !files.has(name))];
  if (wrong.length > 0) fail(`artifacts do not match the sources: ${wrong.join(", ")}; run "node build.mjs"`);
  console.log(`${files.size} artifacts match their sources`);
}

function write(files) {
  rmSync(artifactDir, { recursive: true, force: true });
  mkdirSync(artifactDir);
  for (const [name, text] of files) writeFileSync(join(artifactDir, name), text);
  console.log(`wrote ${files.size} artifacts`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

const files = artifacts(compile(sourceDir));
for (const [name, text] of artifacts(compile(sourceDir, join(sourceDir, former)))) {
  if (files.get(name) !== text) files.set(name.replace(".json", `.${former}.json`), text);
}
if (process.argv.includes("--check")) check(files);
else write(files);
