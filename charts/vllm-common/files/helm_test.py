"""Asks the service for its models and for one completion, and checks both answers.

Runs as the pod of `helm test`, with the standard library only. Settings come from VLLM_TEST_* variables.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

URL = os.environ["VLLM_TEST_URL"].rstrip("/")
MODEL = os.environ["VLLM_TEST_MODEL"]
API_KEY = os.environ.get("VLLM_TEST_API_KEY", "")
DEADLINE = time.monotonic() + float(os.environ.get("VLLM_TEST_TIMEOUT", "120"))


def call(path, body=None):
    """Return the JSON answer of one request; the certificate's name is not the Service's, so it is not verified."""
    headers = {"Content-Type": "application/json"}
    if API_KEY:
        headers["Authorization"] = f"Bearer {API_KEY}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=data, headers=headers)
    context = ssl._create_unverified_context() if URL.startswith("https:") else None
    with urllib.request.urlopen(request, timeout=max(1.0, DEADLINE - time.monotonic()), context=context) as answer:
        return json.load(answer)


def until_served(path, body=None):
    """Repeat a call while the service is not there or busy; any other refusal is final."""
    while True:
        try:
            return call(path, body)
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace").strip()[:300]
            problem = f"{path} answered {error.code}: {detail}"
            if error.code not in (429, 502, 503, 504):
                fail(problem + hint(error.code))
        except (OSError, ValueError) as error:
            problem = f"{path} did not answer: {error}"
        if time.monotonic() + 2 > DEADLINE:
            fail(problem)
        print(f"waiting: {problem}", flush=True)
        time.sleep(2)


def hint(code):
    """Say what to look at for the refusals that have one likely cause."""
    if code == 401:
        return "\nglobal.vllm.auth.apiKeySecret must name the Secret and key that the engines were started with"
    return ""


def fail(problem):
    """End the test."""
    print(f"FAILED {URL}: {problem}", flush=True)
    sys.exit(1)


def main():
    """Run the test."""
    models = [model["id"] for model in until_served("/v1/models")["data"]]
    if MODEL not in models:
        fail(f"the service offers {models}, not {MODEL!r}")
    print(f"models: {', '.join(models)}", flush=True)
    body = {"model": MODEL, "prompt": "Count: one, two, three,", "max_tokens": 8, "temperature": 0}
    answer = until_served("/v1/completions", body)
    usage = answer.get("usage") or {}
    if not answer.get("choices") or not usage.get("completion_tokens"):
        fail(f"the completion holds no tokens: {json.dumps(answer)[:300]}")
    if answer.get("model") != MODEL:
        fail(f"{answer.get('model')!r} answered instead of {MODEL!r}")
    print(f"completion: {usage['completion_tokens']} tokens, {answer['choices'][0]['text']!r}", flush=True)
    print("PASSED", flush=True)


main()
