"""What `validate` finds in an object, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_phases.finding import UsageError
from vllm_phases.objects import Refused as Reason
from vllm_phases.objects import validate
from vllm_phases.rules import all_rules

from tests.objects.examples import (
    ACCEPTED,
    DEPLOYMENT,
    HTTP_ROUTE,
    REFUSED,
    SERVICE,
    Refused,
    changed,
)

OLDEST, NEWEST = "1.25", "1.37"
NAMES = {rule.id: rule.name for rule in all_rules()}


def found(document: Any, kube_version: str = NEWEST) -> list[str]:
    """Rule and message of each finding."""
    return [f"{reason.rule_id} {reason.message}" for reason in validate(document, kube_version)]


@pytest.mark.parametrize("document", ACCEPTED, ids=lambda document: document["kind"])
@pytest.mark.parametrize("minor", range(25, 38))
def test_a_good_object_has_no_findings_in_any_kubernetes_version(document: Any, minor: int) -> None:
    assert found(document, f"1.{minor}") == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_defect_is_named_with_its_place_and_what_to_do(case: Refused) -> None:
    reasons = validate(case.object, NEWEST)
    assert [(f"{it.rule_id} {NAMES[it.rule_id]}", it.message, it.remediation) for it in reasons] == [
        (case.rule, case.message, case.remediation)
    ]


def test_a_reason_says_which_value_it_is_about() -> None:
    document = changed(DEPLOYMENT, "spec/template/spec/containers/0/env/0/value", 1)
    path = ("spec", "template", "spec", "containers", 0, "env", 0, "value")
    assert validate(document, NEWEST) == (Reason("OBJ001", path, "1 is not a string"),)


def test_a_name_may_be_left_to_the_api_server() -> None:
    assert found(changed(DEPLOYMENT, "metadata", {"generateName": "demo-"})) == []


def test_every_defect_of_an_object_is_found_once() -> None:
    broken = changed(changed(DEPLOYMENT, "metadata/name", 5), "spec/template/spec/containers/0/image", 3)
    assert found(broken) == [
        "OBJ001 metadata.name: 5 is not a string",
        "OBJ001 spec.template.spec.containers[0].image: 3 is not a string",
    ]


def test_an_object_of_the_wrong_shape_is_told_its_shape_first() -> None:
    broken = changed(changed(DEPLOYMENT, "metadata/name", "Demo"), "spec/replicas", "two")
    assert found(broken) == ['OBJ001 spec.replicas: "two" is not an integer']


def test_null_is_an_absent_field() -> None:
    container = "spec/template/spec/containers/0"
    assert found(changed(DEPLOYMENT, f"{container}/resources/limits/cpu", None)) == []
    assert found(changed(SERVICE, "spec/ports/0/targetPort", None)) == []
    assert found(changed(DEPLOYMENT, f"{container}/env", None)) == []


@pytest.mark.parametrize("quantity", [1, 0.5, "500m", "1e3", "1E3", "+.5", "5.", "12Ei", "-0", "1e-3", "3n"])
def test_a_quantity_is_a_number_with_at_most_one_suffix(quantity: object) -> None:
    assert found(changed(DEPLOYMENT, "spec/template/spec/volumes/0/emptyDir/sizeLimit", quantity)) == []


@pytest.mark.parametrize(
    "quantity", ["", "G", "1K", "1kB", "1GiB", "1 G", "1,5", "0x1", "1e", "1.5.0", "\u0661"]
)
def test_nothing_else_is_a_quantity(quantity: str) -> None:
    assert found(changed(DEPLOYMENT, "spec/template/spec/volumes/0/emptyDir/sizeLimit", quantity)) == [
        f'OBJ013 spec.template.spec.volumes[0].emptyDir.sizeLimit: "{quantity}" is not a quantity '
        "such as 500m, 2, 40G or 16Gi"
    ]


def test_requests_and_limits_are_compared_as_quantities() -> None:
    resources = {
        "requests": {"memory": "1024Mi", "cpu": "1000m", "nvidia.com/gpu": "2"},
        "limits": {"memory": "1Gi", "cpu": 1, "nvidia.com/gpu": 2},
    }
    assert found(changed(DEPLOYMENT, "spec/template/spec/containers/0/resources", resources)) == []


def test_a_service_name_may_start_with_a_digit_from_kubernetes_1_36_on() -> None:
    service = changed(SERVICE, "metadata/name", "3-server")
    assert found(service, "1.35") == [
        'OBJ010 metadata.name: "3-server" is not a DNS-1035 label '
        "(lower case letters, digits and inner dashes, a letter first, at most 63 characters)"
    ]
    assert found(service, "1.36") == []


def test_a_kind_that_came_later_is_not_served_before() -> None:
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    assert found({**device_class, "spec": {}}, "1.34") == []
    (finding,) = validate(device_class, "1.32")
    assert (finding.rule_id, finding.message, finding.remediation) == (
        "OBJ003",
        "apiVersion: Kubernetes 1.32 does not serve resource.k8s.io/v1 DeviceClass, only 1.34 to 1.37",
        "set apiVersion to resource.k8s.io/v1alpha3 or resource.k8s.io/v1beta1",
    )


def test_a_kind_that_is_gone_was_served_before() -> None:
    kind = {"apiVersion": "autoscaling/v2beta2", "kind": "HorizontalPodAutoscaler"}
    scaler = {**kind, "metadata": {"name": "demo"}}
    assert found(scaler, "1.25") == []
    assert found(scaler, "1.26") == [
        "OBJ003 apiVersion: Kubernetes 1.26 does not serve autoscaling/v2beta2 HorizontalPodAutoscaler, "
        "only 1.25"
    ]


def test_a_long_value_keeps_its_ends() -> None:
    end = 99 * "x"
    assert found(changed(DEPLOYMENT, "spec/replicas", 10 * end)) == [
        f'OBJ001 spec.replicas: "{end} … {end}" is not an integer'
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "message", "remediation"),
    [
        ("argoproj.io/v1alpha1", "Application", "argoproj.io/v1alpha1 Application", ""),
        ("apps.example.com/v1", "Deployment", "apps.example.com/v1 Deployment", "set apiVersion to apps/v1"),
        (
            "gateway.networking.k8s.io/v1",
            "HTTPRout",
            "gateway.networking.k8s.io/v1 HTTPRout",
            'did you mean "HTTPRoute"?',
        ),
        (
            "gateway.networking.k8s.io/v1alpha2",
            "HTTPRoute",
            "gateway.networking.k8s.io/v1alpha2 HTTPRoute",
            "set apiVersion to gateway.networking.k8s.io/v1 or gateway.networking.k8s.io/v1beta1",
        ),
    ],
)
def test_a_custom_resource_without_a_schema_is_said_to_be_unchecked(
    api_version: str, kind: str, message: str, remediation: str
) -> None:
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "demo"}}
    (finding,) = validate(document, NEWEST)
    assert finding.rule_id == "OBJ002"
    assert finding.message == f"kind: no schema for {message}, so it is not checked"
    assert finding.remediation == remediation


@pytest.mark.parametrize(
    "document", [{}, {"apiVersion": "", "kind": None}, {"apiVersion": 1, "kind": ["Pod"]}]
)
def test_what_has_no_api_version_and_kind_is_no_object(document: Any) -> None:
    assert found(document) == [
        "OBJ001 apiVersion: missing, but required",
        "OBJ001 kind: missing, but required",
    ]


def test_what_is_not_json_is_no_object() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {1: "one"}}
    assert found(document) == ["OBJ001 not JSON: Dict key must be str or str enum. Got 'int'"]


@pytest.mark.parametrize(
    "version", ["1.34", "v1.34", "1.34.0", "v1.34.2", "v1.34.2+k3s1", "v1.34.5-gke.1000"]
)
def test_a_kubernetes_version_may_be_spelt_as_clusters_spell_it(version: str) -> None:
    assert found(DEPLOYMENT, version) == []


@pytest.mark.parametrize("version", ["1.24", "1.38.0", "1.3", "2.0", "1", "latest", ""])
def test_a_kubernetes_version_without_schemas_is_an_error_of_usage(version: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(DEPLOYMENT, version)
    assert str(caught.value) == (
        f'Kubernetes version "{version}": object schemas are there for {OLDEST} to {NEWEST}'
    )


def test_the_status_of_a_custom_resource_is_its_controllers_business() -> None:
    assert found({**HTTP_ROUTE, "status": {"anything": ["goes"]}}) == []
