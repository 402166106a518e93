//! How each provider writes a machine.

use rezus_core::declared::resource::{AddressType, Role};
use serde_json::{Value, json};

use super::plan::{External, MachinePlan, OddAddress, Provider};

/// A machine as one provider's resource has it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) attributes: Value,
    pub(super) addresses: Vec<(AddressType, String)>,
    /// Where the name, the ID and the odd address are: steps of a mark's path.
    pub(super) name_at: Vec<Value>,
    pub(super) id_at: Vec<Value>,
    pub(super) odd_at: Vec<Value>,
    /// Whether the odd address, of a kind that is a problem anywhere, is one here.
    pub(super) is_odd_told: bool,
    pub(super) cpus: Option<String>,
    /// Objects beside it: type, attributes, and whether it is in the machine's module.
    pub(super) beside: Vec<(&'static str, Value, bool)>,
}

/// What is to be written.
#[derive(Debug)]
pub(super) struct Content<'p> {
    pub(super) plan: &'p MachinePlan,
    /// The machine's number, unique in the state.
    pub(super) number: usize,
    pub(super) name: Value,
    pub(super) id: Value,
    /// Whether others can refer to the ID.
    pub(super) is_referable: bool,
    pub(super) odd: Option<Value>,
    /// A document that holds a secret beside the role.
    pub(super) document: Option<String>,
}

impl Provider {
    pub(super) const fn resource_type(self) -> &'static str {
        match self {
            Self::Hcloud => "hcloud_server",
            Self::OpenStack => "openstack_compute_instance_v2",
            Self::Aws => "aws_instance",
            Self::Proxmox => "proxmox_virtual_environment_vm",
            Self::TerraformData => "terraform_data",
        }
    }

    pub(super) const fn source(self) -> &'static str {
        match self {
            Self::Hcloud => "registry.opentofu.org/hetznercloud/hcloud",
            Self::OpenStack => "registry.opentofu.org/terraform-provider-openstack/openstack",
            Self::Aws => "registry.opentofu.org/hashicorp/aws",
            Self::Proxmox => "registry.opentofu.org/bpg/proxmox",
            Self::TerraformData => "terraform.io/builtin/terraform",
        }
    }

    pub(super) const fn mapping(self) -> &'static str {
        match self {
            Self::Hcloud => "hcloud",
            Self::OpenStack => "openstack",
            Self::Aws => "aws",
            Self::Proxmox => "proxmox-bpg",
            Self::TerraformData => "terraform",
        }
    }

    /// Tells whether its mapping reads the host's name.
    pub(super) fn has_hostname(self) -> bool {
        matches!(self, Self::Aws | Self::TerraformData)
    }

    pub(super) fn write(self, content: &Content<'_>) -> Written {
        match self {
            Self::Hcloud => hcloud(content),
            Self::OpenStack => openstack(content),
            Self::Aws => aws(content),
            Self::Proxmox => proxmox(content),
            Self::TerraformData => terraform_data(content),
        }
    }
}

/// Returns the role that a label means.
pub(super) fn role_of(label: &str) -> Option<Role> {
    match label {
        "controlplane" | "control-plane" | "Master" | "cp" => Some(Role::ControlPlane),
        "worker" | "agent" => Some(Role::Worker),
        _ => None,
    }
}

pub(super) fn attribute(name: &str) -> Value {
    json!({"type": "get_attr", "value": name})
}

fn element(number: usize) -> Value {
    json!({"type": "index", "value": {"value": number, "type": "number"}})
}

fn map_element(name: &str) -> Value {
    json!({"type": "index", "value": {"value": name, "type": "string"}})
}

impl Content<'_> {
    fn internal(&self) -> String {
        format!("10.{}.{}.7", self.number / 256, self.number % 256)
    }

    fn external(&self) -> String {
        format!("203.{}.{}.7", self.number / 256, self.number % 256)
    }

    fn external_v6(&self) -> String {
        format!("2001:db8:{:x}::7", 0x1000 + self.number)
    }

    /// Labels by the names that every mapping looks for.
    fn labels(&self) -> Value {
        let mut labels = json!({"made_by": "tofu"});
        if let Some(label) = self.plan.label {
            labels["role"] = json!(label);
        }
        if let Some(group) = self.plan.group {
            labels["node_group"] = json!(group);
        }
        labels
    }

    /// Returns the address from within, if it is in the object itself or found beside it.
    fn found_internal(&self) -> Vec<(AddressType, String)> {
        if self.plan.apart && !self.is_referable { Vec::new() } else { vec![inner(self.internal())] }
    }

    fn found_external(&self) -> Vec<(AddressType, String)> {
        let is_found = match self.plan.external {
            External::Own => true,
            External::Joined | External::Far | External::Elsewhere => self.is_referable,
            External::Nowhere => false,
        };
        if is_found { vec![outer(self.external())] } else { Vec::new() }
    }

    fn is_external(&self, external: External) -> bool {
        self.plan.external == external
    }

    /// Tells whether an object that refers to the machine is there, and whether it is in its module.
    fn referring(&self) -> Option<bool> {
        match self.plan.external {
            External::Joined => Some(true),
            External::Elsewhere => Some(false),
            _ => None,
        }
    }
}

fn inner(address: String) -> (AddressType, String) {
    (AddressType::InternalIp, address)
}

fn outer(address: String) -> (AddressType, String) {
    (AddressType::ExternalIp, address)
}

fn hcloud(content: &Content<'_>) -> Written {
    let mut networks = Vec::new();
    let mut beside = Vec::new();
    if content.plan.apart {
        let attached = json!({"server_id": content.id, "ip": content.internal(), "network_id": 4711});
        beside.push(("hcloud_server_network", attached, true));
    } else {
        networks.push(json!({"ip": content.internal(), "alias_ips": ["10.255.0.1"]}));
    }
    let odd_at = vec![attribute("network"), element(networks.len()), attribute("ip")];
    networks.extend(content.odd.iter().map(|odd| json!({"ip": odd, "alias_ips": []})));
    if let Some(is_near) = content.referring() {
        let floating = json!({"id": "77", "server_id": content.id, "ip_address": content.external()});
        beside.push(("hcloud_floating_ip", floating, is_near));
    }
    if content.is_external(External::Far) {
        let id = format!("fip-{}", content.number);
        let assigned = json!({"server_id": content.id, "floating_ip_id": id});
        beside.push(("hcloud_floating_ip_assignment", assigned, true));
        let floating = json!({"id": id, "server_id": null, "ip_address": content.external()});
        beside.push(("hcloud_floating_ip", floating, true));
    }
    let own = if content.is_external(External::Own) { content.external() } else { String::new() };
    Written {
        attributes: json!({
            "id": content.id, "name": content.name, "labels": content.labels(), "network": networks,
            "ipv4_address": own, "ipv6_address": null, "status": "running",
        }),
        addresses: [content.found_internal(), content.found_external()].concat(),
        name_at: vec![attribute("name")],
        id_at: vec![attribute("id")],
        odd_at,
        is_odd_told: true,
        cpus: None,
        beside,
    }
}

fn openstack(content: &Content<'_>) -> Written {
    let number = content.number;
    let mut network = json!({"name": "net", "port": format!("nic-{number}"), "fixed_ip_v4": ""});
    let mut beside = Vec::new();
    if content.plan.apart {
        let attached = json!({"instance_id": content.id, "fixed_ip": content.internal(), "port_id": "none"});
        beside.push(("openstack_compute_interface_attach_v2", attached, true));
    } else {
        network["fixed_ip_v4"] = json!(content.internal());
    }
    if content.is_external(External::Own) {
        network["floating_ip"] = json!(content.external());
    }
    let mut networks = vec![network];
    networks.extend(content.odd.iter().map(|odd| json!({"name": "odd", "fixed_ip_v4": odd})));
    if let Some(is_near) = content.referring() {
        let associated = json!({"instance_id": content.id, "floating_ip": content.external()});
        beside.push(("openstack_compute_floatingip_associate_v2", associated, is_near));
    }
    if content.is_external(External::Far) {
        let port = format!("port-{number}");
        beside.push(("openstack_networking_port_v2", json!({"id": port, "device_id": content.id}), true));
        let associated = json!({"port_id": port, "floating_ip": content.external()});
        beside.push(("openstack_networking_floatingip_associate_v2", associated, true));
    }
    Written {
        attributes: json!({
            "id": content.id, "name": content.name, "metadata": content.labels(), "network": networks,
            "access_ip_v6": "", "flavor_name": "m1.small", "power_state": "active",
        }),
        addresses: [content.found_internal(), content.found_external()].concat(),
        name_at: vec![attribute("name")],
        id_at: vec![attribute("id")],
        odd_at: vec![attribute("network"), element(1), attribute("fixed_ip_v4")],
        is_odd_told: true,
        cpus: None,
        beside,
    }
}

fn aws(content: &Content<'_>) -> Written {
    let number = content.number;
    let mut tags = content.labels();
    tags["Name"] = content.name.clone();
    let mut beside = Vec::new();
    if let Some(is_near) = content.referring() {
        let elastic = json!({"id": "eip-x", "instance": content.id, "public_ip": content.external()});
        beside.push(("aws_eip", elastic, is_near));
    }
    if content.is_external(External::Far) {
        let id = format!("eipalloc-{number}");
        let associated = json!({"instance_id": content.id, "allocation_id": id, "public_ip": ""});
        beside.push(("aws_eip_association", associated, true));
        beside.push(("aws_eip", json!({"id": id, "instance": null, "public_ip": content.external()}), true));
    }
    let own = if content.is_external(External::Own) { content.external() } else { String::new() };
    let private = (!content.plan.apart).then(|| content.internal());
    let dns = content.plan.hostname.then(|| hostname(number));
    Written {
        attributes: json!({
            "id": content.id, "tags": tags, "private_ip": private, "public_ip": own,
            "ipv6_addresses": content.odd.iter().collect::<Vec<_>>(), "private_dns": dns,
            "user_data": content.document, "instance_type": "m5.large", "instance_state": "running",
        }),
        addresses: private.map(inner).into_iter().chain(content.found_external()).collect(),
        name_at: vec![attribute("tags"), map_element("Name")],
        id_at: vec![attribute("id")],
        odd_at: vec![attribute("ipv6_addresses"), element(0)],
        is_odd_told: true,
        cpus: None,
        beside,
    }
}

/// Returns the host's name where the provider knows it.
pub(super) fn hostname(number: usize) -> String {
    format!("ip-{number}.example.internal")
}

fn proxmox(content: &Content<'_>) -> Written {
    let number = content.number;
    let mut tags = vec!["talos".to_owned()];
    tags.extend(content.plan.label.map(|label| match label {
        "cp" | "agent" | "gpu" => format!("role={label}"),
        word => word.to_owned(),
    }));
    tags.extend(content.plan.group.map(|group| format!("node_group={group}")));
    let is_external = content.is_external(External::Own);
    let sockets = 1 + number % 2;
    let mut attributes = json!({
        "id": content.id, "name": content.name, "tags": tags, "template": false, "started": true,
        "cpu": [{"cores": 2, "sockets": sockets}], "memory": [{"dedicated": 2048}],
        "network_interface_names": [], "ipv4_addresses": [], "ipv6_addresses": [], "initialization": [],
    });
    let odd_at = if content.plan.apart {
        let address = format!("{}/24", content.internal());
        let mut configs = vec![json!({"ipv4": [{"address": address}]})];
        configs.extend(content.odd.iter().map(|odd| json!({"ipv4": [{"address": odd}]})));
        if is_external {
            configs.push(json!({"ipv6": [{"address": format!("{}/64", content.external_v6())}]}));
        }
        attributes["initialization"] = json!([{"ip_config": configs}]);
        let below = [attribute("ip_config"), element(1), attribute("ipv4"), element(0), attribute("address")];
        [vec![attribute("initialization"), element(0)], below.to_vec()].concat()
    } else {
        let mut addresses = vec![json!(content.internal())];
        addresses.extend(content.odd.clone());
        attributes["network_interface_names"] = json!(["lo", "eth0", "cilium_host"]);
        attributes["ipv4_addresses"] = json!([["127.0.0.1"], addresses, ["10.244.0.9"]]);
        let v6 = if is_external { vec![content.external_v6()] } else { Vec::new() };
        attributes["ipv6_addresses"] = json!([["::1"], v6, ["fd00::9"]]);
        vec![attribute("ipv4_addresses"), element(1), element(1)]
    };
    let mut addresses = vec![inner(content.internal())];
    if is_external {
        addresses.push(outer(content.external_v6()));
    }
    Written {
        attributes,
        addresses,
        name_at: vec![attribute("name")],
        id_at: vec![attribute("id")],
        odd_at,
        is_odd_told: false,
        cpus: Some((2 * sockets).to_string()),
        beside: Vec::new(),
    }
}

fn terraform_data(content: &Content<'_>) -> Written {
    let mut addresses = Vec::new();
    let mut internal = Vec::new();
    if !content.plan.apart {
        internal.push(json!(content.internal()));
        addresses.push(inner(content.internal()));
    }
    let at = internal.len();
    internal.extend(content.odd.clone());
    let mut input = json!({
        "rezus_kind": "Machine", "name": content.name, "provider_id": content.id, "cpus": "4",
        "internal_ips": internal, "external_ips": [],
    });
    if content.is_external(External::Own) {
        input["external_ips"] = json!([content.external_v6()]);
        addresses.push(outer(content.external_v6()));
    }
    if let Some(label) = content.plan.label {
        input["role"] = json!(label);
    }
    if let Some(group) = content.plan.group {
        input["node_group"] = json!(group);
    }
    if content.plan.hostname {
        input["hostname"] = json!(hostname(content.number));
    }
    Written {
        attributes: json!({
            "id": format!("uuid-{}", content.number),
            "input": {"value": input, "type": ["object", {"name": "dynamic"}]},
        }),
        addresses,
        name_at: vec![attribute("input"), attribute("name")],
        id_at: vec![attribute("input"), attribute("provider_id")],
        odd_at: vec![attribute("input"), attribute("internal_ips"), element(at)],
        is_odd_told: true,
        cpus: Some("4".to_owned()),
        beside: Vec::new(),
    }
}

/// Returns what stands in the place of an odd address, but for a marked one.
pub(super) fn odd_address(odd: OddAddress) -> Option<Value> {
    match odd {
        OddAddress::LinkLocal => Some(json!("169.254.7.7")),
        OddAddress::Object => Some(json!({"x": 1})),
        OddAddress::None | OddAddress::Marked => None,
    }
}
