#!/usr/bin/env python3
"""Takes what alerts send by HTTP, in Slack's place, and appends each body as a line: sink.py ADDRESS PORT FILE."""
import http.server
import sys


class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        with open(sys.argv[3], 'ab') as f:
            f.write(body + b'\n')
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'ok')

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Sink).serve_forever()
