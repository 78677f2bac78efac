#!/usr/bin/env python3
"""A provider's gateway before a node, by HTTP, as unkind as they are: gateway.py NODE ADDRESS PORT KIND...

KIND: header:NAME=VALUE  401 without it          rate:N    429 above N requests a second
      ranges:N           eth_getLogs of N blocks at most      prunes:N  no logs and receipts older than N blocks"""
import http.server
import json
import sys
import threading
import time
import urllib.request

node, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
kinds = dict(k.split(':', 1) for k in sys.argv[4:])
lock, taken = threading.Lock(), [0.0, 0]


def ask(body):
    request = urllib.request.Request(node, body, {'Content-Type': 'application/json'})
    return urllib.request.urlopen(request, timeout=30).read()


def too_many():
    with lock:
        second = int(time.time())
        if taken[0] != second:
            taken[:] = [second, 0]
        taken[1] += 1
        return 'rate' in kinds and taken[1] > int(kinds['rate'])


def result(method, *params):
    return json.loads(ask(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()))['result']


def head():
    return int(result('eth_blockNumber'), 16)


def blocks(call):
    """The first and the last block of which logs or receipts are asked for."""
    of = call['params'][0]
    if call['method'] == 'eth_getBlockReceipts':
        of = {'blockHash': of} if len(of) == 66 else {'fromBlock': of, 'toBlock': of}
    if 'blockHash' in of:
        block = result('eth_getBlockByHash', of['blockHash'], False)
        return (int(block['number'], 16),) * 2 if block else None
    if not of['fromBlock'].startswith('0x') or not of['toBlock'].startswith('0x'):
        return None
    return int(of['fromBlock'], 16), int(of['toBlock'], 16)


def refusal(call):
    if call.get('method') not in ('eth_getLogs', 'eth_getBlockReceipts') or not (asked := blocks(call)):
        return None
    first, last = asked
    if 'ranges' in kinds and last - first + 1 > int(kinds['ranges']):
        return {'code': -32602, 'message': f'query exceeds max block range {kinds["ranges"]}'}
    if 'prunes' in kinds and first < head() - int(kinds['prunes']):
        return {'code': 4444, 'message': 'pruned history unavailable'}
    return None


class Gateway(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        name, _, value = kinds.get('header', '').partition('=')
        if name and self.headers.get(name) != value:
            return self.say(401, b'{"error":"a key is wanted"}')
        if too_many():
            return self.say(429, b'{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Too Many Requests"}}')
        call = json.loads(body)
        if isinstance(call, dict) and (failed := refusal(call)):
            return self.say(200, json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'error': failed}).encode())
        self.say(200, ask(body))

    def say(self, status, body):
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer((address, port), Gateway).serve_forever()
