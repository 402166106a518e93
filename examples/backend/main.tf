# A small cluster of machines that no provider manages: bare metal, or a first look at rezus.
#
#   rezus-server serve                                   # in another terminal
#   terraform init && terraform apply                    # or tofu
#   rezus-server state list demo
#
# A `terraform_data` whose input has `rezus_kind = "Machine"` declares a machine.

terraform {
  backend "http" {
    address        = "http://127.0.0.1:8080/state/demo"
    lock_address   = "http://127.0.0.1:8080/state/demo"
    unlock_address = "http://127.0.0.1:8080/state/demo"
  }
}

variable "join_token" {
  description = "What a machine shows to join the cluster."
  type        = string
  sensitive   = true
  default     = "demo-only-join-token-5f2c9a"
}

variable "workers" {
  description = "Workers by name, with their site and size."
  type        = map(object({ zone = string, cpus = number, memory_mib = number }))
  default = {
    "edge-berlin" = { zone = "berlin", cpus = 4, memory_mib = 8192 }
    "edge-lisbon" = { zone = "lisbon", cpus = 4, memory_mib = 8192 }
    "edge/oslo"   = { zone = "oslo", cpus = 8, memory_mib = 16384 }
  }
}

resource "terraform_data" "control_plane" {
  count = 3

  input = {
    rezus_kind    = "Machine"
    name          = "cp-${count.index + 1}"
    hostname      = "cp-${count.index + 1}.demo.example"
    role          = "controlplane"
    node_group    = "control-plane"
    provider_id   = "metal://rack-1/${count.index + 1}"
    internal_ips  = ["192.0.2.${count.index + 11}"]
    external_ips  = ["198.51.100.${count.index + 11}"]
    instance_type = "metal.small"
    region        = "eu"
    zone          = "berlin"
    image         = "talos-v1.11.2"
    cpus          = 4
    memory_mib    = 8192
  }
}

resource "terraform_data" "worker" {
  for_each = var.workers

  input = {
    rezus_kind   = "Machine"
    name         = replace(each.key, "/", "-")
    role         = "worker"
    node_group   = "edge"
    provider_id  = "metal://edge/${each.key}"
    internal_ips = ["192.0.2.${index(keys(var.workers), each.key) + 101}"]
    region       = "eu"
    zone         = each.value.zone
    image        = "talos-v1.11.2"
    cpus         = each.value.cpus
    memory_mib   = each.value.memory_mib
    # Hidden wherever rezus shows a state; only `tofu` itself reads it.
    join_token = var.join_token
  }
}

output "control_plane_addresses" {
  description = "Where the cluster's API answers."
  value       = flatten([for machine in terraform_data.control_plane : machine.output.internal_ips])
}
