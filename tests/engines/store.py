"""An object store that speaks the protocol of S3, as far as files, ranges and lists go."""

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


class Handler(BaseHTTPRequestHandler):
    """PUT, HEAD and GET of /bucket/name, kept in memory."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        return None

    def answer(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_PUT(self):
        self.server.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, ETag='"1"')

    def do_HEAD(self):
        self.do_GET()

    def list(self, bucket, prefix):
        found = "".join(
            f"<Contents><Key>{path.removeprefix(bucket)}</Key><Size>{len(body)}</Size>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for path, body in sorted(self.server.files.items())
            if path.startswith(bucket + prefix)
        )
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        self.answer(200, text.encode(), Content_Type="application/xml")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if query:
            return self.list(path.rstrip("/") + "/", parse_qs(query).get("prefix", [""])[0])
        whole = self.server.files.get(self.path)
        if whole is None:
            return self.answer(404)
        common = {"ETag": '"1"', "Last_Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if self.command == "HEAD":
            return self.answer(200, **common | {"Content_Length": len(whole)})
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return self.answer(200, whole, **common)
        first, last = int(asked[1]), min(int(asked[2] or len(whole) - 1), len(whole) - 1)
        place = {"Content_Range": f"bytes {first}-{last}/{len(whole)}"}
        return self.answer(206, whole[first : last + 1], **common | place)


@contextmanager
def store():
    """The address of a running store on loopback, and its files by path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files = {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
