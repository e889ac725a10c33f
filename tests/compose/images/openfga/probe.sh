#!/bin/sh
# stands for grpc_health_probe: asks the same server over HTTP
exec python3 -c "import urllib.request as r; assert b'SERVING' in r.urlopen('http://127.0.0.1:8080/healthz', timeout=4).read()"
