"""Asks the service for its models and for one completion, and proves that prefill handed its KV to decode.

Runs as the pod of `helm test`, with the standard library only. Settings come from VLLM_TEST_* variables:
  URL, MODEL, API_KEY, TIMEOUT   the service that clients use, and the seconds that the test may take
  SERVICE, HEADERS  where a Gateway wants them: the Service asked by the URL's host name, and headers as JSON
  PREFILL, DECODE   where there are two roles: host:port of each server in a pod, meaning every ready pod
  MOVED, FAILED     the connector's counters, as lists: of transfers, of failed transfers
"""

import http.client
import json
import os
import random
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ["VLLM_TEST_URL"].rstrip("/")
MODEL = os.environ["VLLM_TEST_MODEL"]
SERVICE = os.environ.get("VLLM_TEST_SERVICE", "")
HEADERS = json.loads(os.environ.get("VLLM_TEST_HEADERS", "{}"))
API_KEY = os.environ.get("VLLM_TEST_API_KEY", "")
DEADLINE = time.monotonic() + float(os.environ.get("VLLM_TEST_TIMEOUT", "120"))
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)  # refused, cut off, or nonsense
PATIENCE = 15  # seconds for an engine's own answer, which may be busy
ROLES = {
    role: os.environ[f"VLLM_TEST_{role.upper()}"]
    for role in ("prefill", "decode")
    if f"VLLM_TEST_{role.upper()}" in os.environ
}
MOVED = os.environ.get("VLLM_TEST_MOVED", "").split()
FAILED = os.environ.get("VLLM_TEST_FAILED", "").split()


def fetch(url, body=None, seconds=0):
    """Return the answer to one request within the given time, or what is left of the test's.

    The certificate is not verified: it need not name the Service.
    """
    headers = {"Content-Type": "application/json", **(HEADERS if url.startswith(URL) else {})}
    if API_KEY:
        headers["Authorization"] = f"Bearer {API_KEY}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    context = ssl._create_unverified_context() if url.startswith("https:") else None
    timeout = seconds or max(1.0, DEADLINE - time.monotonic())
    with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
        return answer.read().decode()


def until_served(path, body=None):
    """Repeat a request while the service is not there or busy; any other refusal is final."""
    while True:
        try:
            return json.loads(fetch(URL + path, body))
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace").strip()[:300]
            problem = f"{path} answered {error.code}: {detail}"
            if error.code not in (429, 500, 502, 503, 504):
                fail(problem + hint(error.code))
        except NO_ANSWER as error:
            problem = f"{path} did not answer: {error}"
        if time.monotonic() + 2 > DEADLINE:
            fail(problem)
        print(f"waiting: {problem}", flush=True)
        time.sleep(2)


def hint(code):
    """Say what to look at for the refusals that have one likely cause."""
    if code == 401:
        return (
            "\nglobal.vllm.auth.apiKeySecret must name the Secret and key that the engines were started with"
        )
    return ""


def fail(problem):
    """End the test; where there are roles, say first which link between them is broken."""
    for link, state in broken():
        print(f"FAILED {link}: {state}", flush=True)
    print(f"FAILED {URL}: {problem}", flush=True)
    sys.exit(1)


def broken():
    """Return the links that are broken, each with what is seen there: roles that are gone, else transfers."""
    states = [(role, unreachable(name)) for role, name in ROLES.items()]
    gone = [(role, state) for role, state in states if state]
    failed = 0 if gone or not ROLES else (read_counters() or {"failed": 0})["failed"]
    if failed:
        gone.append(
            (
                "prefill to decode",
                f"{failed:.0f} transfers failed since the engines started; their logs say why",
            )
        )
    return gone


def unreachable(name):
    """Say why no engine of a role can be reached, or nothing."""
    try:
        for pod in pods(name):
            fetch(f"{pod}/health", seconds=PATIENCE)
    except NO_ANSWER as error:
        return f"no ready engine behind {name}: {error}"
    return ""


def pods(names):
    """Return the address of every server in the ready pods behind headless Services, words of host:port."""
    servers = []
    scheme = URL.split("://")[0]  # engines and the service have TLS together
    for host, port in (name.rsplit(":", 1) for name in names.split()):
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        hosts = sorted({address[0] for *_, address in found})
        servers += [
            f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"
            for address in hosts
        ]
    return servers


def count(role, metrics):
    """Return the sum of metrics over all pods of a role."""
    total = 0.0
    for pod in pods(ROLES[role]):
        for line in fetch(f"{pod}/metrics", seconds=PATIENCE).splitlines():
            if line.split("{")[0].split(" ")[0] in metrics:
                total += float(line.rsplit(" ", 1)[1])
    return total


def counters():
    """Return what the roles have counted so far."""
    both = {
        name: sum(count(role, metrics) for role in ROLES)
        for name, metrics in (("moved", MOVED), ("failed", FAILED))
    }
    return {**both, "prefilled": count("prefill", ["vllm:prompt_tokens_total"])}


def read_counters():
    """Return the counters, tried a few times, since a busy engine may drop a connection; None at last."""
    for _ in range(3):
        try:
            return counters()
        except NO_ANSWER as error:
            print(f"waiting: the engines' counters cannot be read: {error}", flush=True)
            time.sleep(2)
    return None


def prove_transfer():
    """Send a prompt that no cache knows, and require that prefill saw it and its KV was moved."""
    before = read_counters() or fail("the engines' counters cannot be read")
    words = " ".join(random.choice(("red", "green", "blue", "black", "white")) for _ in range(120))
    completion(f"{random.random()} {words}")
    for _ in range(10):
        after = read_counters() or fail("the engines' counters cannot be read")
        if after["prefilled"] > before["prefilled"] and (after["moved"] > before["moved"] or not MOVED):
            break
        time.sleep(1)
    if after["failed"] > before["failed"]:
        fail(f"prefill to decode: {after['failed'] - before['failed']:.0f} transfers failed, yet it answered")
    if after["prefilled"] <= before["prefilled"]:
        fail("front door to prefill: the answer came, but prefill never saw the prompt")
    if not MOVED:
        print("transfer: NOT PROVED, this connector counts none in this engine version", flush=True)
    elif after["moved"] <= before["moved"]:
        fail("prefill to decode: prefill saw the prompt, but no KV was moved; decode computed it again")
    else:
        print(
            f"transfer: {after['moved'] - before['moved']:.0f} from prefill to decode, none failed",
            flush=True,
        )


def completion(prompt):
    """Ask for one completion and check it."""
    request = {"model": MODEL, "prompt": prompt, "max_tokens": 8, "temperature": 0}
    answer = until_served("/v1/completions", request)
    usage = answer.get("usage") or {}
    if not answer.get("choices") or not usage.get("completion_tokens"):
        fail(f"the completion holds no tokens: {json.dumps(answer)[:300]}")
    if answer.get("model") != MODEL:
        fail(f"{answer.get('model')!r} answered instead of {MODEL!r}")
    print(f"completion: {usage['completion_tokens']} tokens, {answer['choices'][0]['text']!r}", flush=True)


def ask_service():
    """Have the URL's host name lead to the Service, as its own look-up would lead out of the cluster."""
    lookup, name = socket.getaddrinfo, urllib.parse.urlsplit(URL).hostname

    def found(host, *args, **options):
        return lookup(SERVICE if host == name else host, *args, **options)

    socket.getaddrinfo = found


def main():
    """Run the test."""
    if SERVICE:
        ask_service()
    models = [model["id"] for model in until_served("/v1/models")["data"]]
    if MODEL not in models:
        fail(f"the service offers {models}, not {MODEL!r}")
    print(f"models: {', '.join(models)}", flush=True)
    completion("Count: one, two, three,")
    if ROLES:
        prove_transfer()
    print("PASSED", flush=True)


main()
