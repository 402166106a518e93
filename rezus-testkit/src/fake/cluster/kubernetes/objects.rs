//! Objects as an API server writes them.

use serde_json::{Value, json};

/// A Node that is ready: 8 cores, 16 GiB, with what nobody reads and every server sends (`managedFields`, images).
pub fn node(name: &str) -> Value {
    let image = |index: usize| json!({"names": [format!("registry.example/{name}/image-{index}@sha256:{index:064x}")], "sizeBytes": 12_345_678});
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": format!("{reason} on {name}"),
            "lastHeartbeatTime": "2026-11-30T19:10:00Z", "lastTransitionTime": "2026-11-01T08:00:00Z",
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("uid-of-{name}"), "creationTimestamp": "2026-11-01T07:59:00Z",
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"f:conditions": {}}}}],
        },
        "spec": {"podCIDR": "10.244.0.0/24", "providerID": format!("fake://zone/{name}")},
        "status": {
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.7"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "machineID": "be871ac0d0dd31fa4caca753b0f3f1b2", "systemUUID": format!("system-{name}"),
                "bootID": format!("boot-{name}"), "kernelVersion": "6.12.1-talos", "osImage": "Talos (v1.13.9)",
                "containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.35.1",
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
            "capacity": {"cpu": "8", "memory": "16384Mi", "ephemeral-storage": "100Gi", "pods": "110", "hugepages-2Mi": "0"},
            "allocatable": {"cpu": "7950m", "memory": "15Gi", "ephemeral-storage": "90Gi", "pods": "110"},
            "images": (0..5).map(image).collect::<Vec<_>>(),
        },
    })
}

/// A Pod with one container, which runs and is ready.
pub fn pod(namespace: &str, name: &str, on: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-of-{namespace}-{name}"),
            "creationTimestamp": "2026-11-20T08:00:00Z", "labels": {"app": name},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "x", "controller": true}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "registry.example/main:1"}]},
        "status": {
            "phase": "Running", "startTime": "2026-11-20T08:00:00Z",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T08:00:10Z"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T08:00:00Z"},
            ],
            "containerStatuses": [{
                "name": "main", "ready": true, "started": true, "restartCount": 0,
                "image": "registry.example/main:1", "imageID": "", "lastState": {},
                "state": {"running": {"startedAt": "2026-11-20T08:00:05Z"}},
            }],
        },
    })
}

/// Sets the status of the condition `Ready`.
pub(super) fn set_ready(node: &mut Value, status: &str) {
    let conditions = node["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "Ready") {
        condition["status"] = status.into();
        condition["lastTransitionTime"] = "2026-11-30T19:10:30Z".into();
    }
}
