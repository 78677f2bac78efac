#!/usr/bin/env python3
"""Holds a keeper's books against the chain: every transaction of its signers was signed and noted by it, their numbers have no gap, every intent that ended
as executed has a successful transaction, and no order was executed by two.

    books.py RPC-URL PROJECT SIGNER[,SIGNER...]

Prints one line of figures, then what is wrong; exit status 1 if anything is."""
import json
import subprocess
import sys
import urllib.request

url, project, signers = sys.argv[1], sys.argv[2], [s.lower() for s in sys.argv[3].split(',')]
STRIDE = 100  # calls in one request
wrong = []


def rpc(calls):
    """The results of calls (method, parameters), in their order."""
    results = []
    for at in range(0, len(calls), STRIDE):
        body = [{'jsonrpc': '2.0', 'id': i, 'method': m, 'params': p} for i, (m, p) in enumerate(calls[at:at + STRIDE])]
        request = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': 'application/json'})
        answers = json.load(urllib.request.urlopen(request, timeout=60))
        results += [a['result'] for a in sorted(answers, key=lambda a: a['id'])]
    return results


def sql(query):
    command = ['docker', 'exec', project + '-postgres-1', 'psql', '-U', 'keeper', '-d', 'keeper', '-At', '-F', '\t', '-c', query]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split('\t') for line in out.splitlines()]


def mined_by_signers(final):
    """For each signer its transactions up to a block: nonce to (hash, block)."""
    chain = {s: {} for s in signers}
    for block in rpc([('eth_getBlockByNumber', [hex(n), True]) for n in range(final + 1)]):
        for t in block['transactions']:
            if t['from'].lower() in chain:
                chain[t['from'].lower()][int(t['nonce'], 16)] = (t['hash'], int(block['number'], 16))
    return chain


final = int(rpc([('eth_getBlockByNumber', ['finalized', False])])[0]['number'], 16)
chain = mined_by_signers(final)
for signer, by_nonce in chain.items():
    missing = [n for n in range(max(by_nonce, default=-1) + 1) if n not in by_nonce]
    if missing:
        wrong.append(f'{signer}: the chain lacks the nonces {missing[:5]}')

mined = {h: n for by_nonce in chain.values() for h, n in by_nonce.values()}
succeeded = {r['transactionHash']: int(r['status'], 16) == 1 for r in rpc([('eth_getTransactionReceipt', [h]) for h in mined])}
signed = {r[0] for r in sql("select '0x' || encode(hash, 'hex') from keeper.signed_tx")}
foreign = [h for h in mined if h not in signed]
if foreign:
    wrong.append(f'{len(foreign)} mined transactions of our signers are not in signed_tx: {foreign[:3]}')

noted = {h: (int(block), ok == 't') for h, block, ok in sql("select '0x' || encode(tx_hash, 'hex'), block, ok from keeper.tx_receipt")}
settled = final - 20  # what is older must have been noted
for h, n in mined.items():
    if n < settled and h in signed and h not in noted:
        wrong.append(f'{h} of block {n} has no tx_receipt')
for h, (block, ok) in noted.items():
    if block <= final and h not in mined:
        wrong.append(f'{h} of block {block} is in tx_receipt and not on the chain')
    elif block <= final and (block, ok) != (mined[h], succeeded[h]):
        wrong.append(f'{h}: block and status on the chain are {mined[h]}, {succeeded[h]}; in tx_receipt {block}, {ok}')

twice = sql("select key, count(*) from (select encode(i.key, 'hex') as key from keeper.tx_receipt r join keeper.tx_intent i on i.id = r.intent "
            "where r.final and i.kind <> 'liquidation' and r.outcome = 'executed') x group by 1 having count(*) > 1")
if twice:
    wrong.append(f'executed twice: {twice}')

intents = ', '.join(f'{s} {n}' for s, n in sql("select state || coalesce(' ' || outcome, ''), count(*) from keeper.tx_intent group by 1 order by 1"))
print(f'block {final}: {len(mined)} transactions, {sum(not ok for ok in succeeded.values())} of them reverted; intents: {intents}')
for w in wrong:
    print('WRONG:', w)
sys.exit(1 if wrong else 0)
