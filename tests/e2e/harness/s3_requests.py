"""What a test asks of an S3 store by itself: signed by code that shares nothing with varve's."""

import hashlib
import hmac
import http.client
import urllib.parse
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timezone

ACCESS_KEY, SECRET_KEY, REGION = "AKVARVETEST", "a/secret+of=tests", "us-east-1"


class S3Failed(Exception):
    pass


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def request(port, method, path, query=(), body=b""):
    """(status, body) of one request to the store on a port of loopback."""
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    host, payload = f"127.0.0.1:{port}", hashlib.sha256(body).hexdigest()
    path = urllib.parse.quote(path, safe="/-_.~")
    query = "&".join(f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}"
                     for name, value in sorted(query))
    headers = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": now}
    names = ";".join(sorted(headers))
    canonical = "\n".join((method, path, query, *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names,
                           payload))
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = _hmac(b"AWS4" + SECRET_KEY.encode(), now[:8])
    for part in (REGION, "s3", "aws4_request"):
        key = _hmac(key, part)
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={names}, "
                                f"Signature={_hmac(key, text).hex()}")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path + ("?" + query if query else ""), body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def make_bucket(port, bucket):
    status, text = request(port, "PUT", f"/{bucket}")
    if status != 200:
        raise S3Failed(f"bucket {bucket}: {status} {text.decode(errors='replace')}")


def keys(port, bucket, prefix=""):
    """All of them, in the order in which the store names them."""
    found, after = [], ""
    while True:
        query = [("list-type", "2"), ("prefix", prefix), ("start-after", after)]
        status, text = request(port, "GET", f"/{bucket}", query)
        if status != 200:
            raise S3Failed(f"list {bucket}: {status} {text.decode(errors='replace')}")
        root = ElementTree.fromstring(text)
        space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
        page = [item.findtext(f"{space}Key") for item in root.iter(f"{space}Contents")]
        found += page
        if root.findtext(f"{space}IsTruncated") != "true" or not page:
            return found
        after = page[-1]
