//! The fixtures, projected by the built-in mappings: every machine as `fixtures/README.md` says that it must come out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{Document, PlainState, read_with};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projection::{project, project_machine};
use rezus_core::declared::resource::{AddressType, Machine, MachineKey, Power, Projection, Role};
use rezus_testkit::fixture::{Accept, StateFixture, states};
use serde_json::Value;

/// A projected fixture.
struct Projected {
    fixture: StateFixture,
    state: PlainState,
    projection: Projection,
}

/// The built-in mappings; what is wrong in one is said, where [`Mappings::built_in`] has none then.
fn built_in() -> Mappings {
    match Mappings::compile(&[]) {
        Ok(mappings) => mappings,
        Err(errors) => {
            panic!("{}", errors.iter().fold(String::new(), |text, error| text + "\n" + &error.to_string()))
        }
    }
}

fn projected(mappings: &Mappings) -> Vec<Projected> {
    let mut all = Vec::new();
    for fixture in states().into_iter().filter(|fixture| fixture.expect.accept() == Accept::Project) {
        let Ok(Document::Plain(state)) = read_with(&fixture.body, &|kind| mappings.secret_rules(kind)) else {
            panic!("{}: no state", fixture.name);
        };
        let projection = project(mappings, VersionNumber::new(1).unwrap(), &fixture.body, &state.rows);
        all.push(Projected { fixture, state, projection });
    }
    assert!(all.len() > 15, "fixtures are missing");
    all
}

fn report(differences: &BTreeMap<String, Vec<String>>) {
    let mut text = String::new();
    for (fixture, lines) in differences.iter().filter(|(_, lines)| !lines.is_empty()) {
        let _ = writeln!(text, "\n{fixture}");
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
    }
    assert!(text.is_empty(), "the projection differs from what is expected:\n{text}");
}

#[test]
fn every_mapping_file_is_built_in() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/mappings")).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let built_in = built_in();
    let names = built_in.providers().iter().map(|provider| format!("{}.yaml", provider.name));
    assert_eq!(names.collect::<BTreeSet<_>>(), files);
}

#[test]
fn machines_come_out_as_expected() {
    let mappings = built_in();
    let mut differences = BTreeMap::new();
    for projected in projected(&mappings) {
        differences.insert(projected.fixture.name.clone(), projected.machines());
    }
    report(&differences);
}

#[test]
fn facts_of_the_cluster_come_out_as_expected() {
    let mappings = built_in();
    let mut differences = BTreeMap::new();
    for projected in projected(&mappings) {
        differences.insert(projected.fixture.name.clone(), projected.cluster());
    }
    report(&differences);
}

#[test]
fn no_type_but_the_unknown_one_is_unmapped() {
    let mappings = built_in();
    for projected in projected(&mappings) {
        let expected: &[(String, u64)] = match projected.fixture.name.as_str() {
            "edge-deposed-tainted" => &[("unknowncloud_machine".to_owned(), 1)],
            _ => &[],
        };
        assert_eq!(projected.projection.cluster.unmapped, expected, "{}", projected.fixture.name);
    }
}

#[test]
fn no_secret_string_is_projected() {
    let mappings = built_in();
    for projected in projected(&mappings) {
        let shown = format!("{:?}", projected.projection);
        for secret in projected.fixture.expect.secret_strings() {
            assert!(!shown.contains(secret), "{}: {secret}", projected.fixture.name);
        }
    }
}

#[test]
fn hidden_fields_are_absent_and_said_to_be_hidden() {
    let mappings = built_in();
    let all = projected(&mappings);
    let projected = all.iter().find(|projected| projected.fixture.name == "edge-sensitive").unwrap();
    let machines = &projected.projection.machines;
    let machine = machines.iter().find(|machine| machine.address.as_str() == "hcloud_server.whole").unwrap();
    let fields: BTreeSet<_> = machine.problems.iter().map(|problem| problem.field.as_str()).collect();
    assert!(fields.contains("name"), "{:?}", machine.problems);
    assert!(fields.iter().any(|field| field.starts_with("addresses")), "{:?}", machine.problems);
}

#[test]
fn one_machine_alone_is_what_it_is_among_all() {
    let mappings = built_in();
    for projected in projected(&mappings) {
        for machine in &projected.projection.machines {
            let key = MachineKey {
                object_name: machine.object_name.clone(),
                address: machine.address.clone(),
                element: machine.element.clone(),
                node_group: machine.node_group.clone(),
                context: machine.context.clone(),
            };
            let objects = machine.fed_by.iter().map(|(address, deposed)| {
                let is_it = |row: &&rezus_core::declared::index::IndexRow| {
                    row.address == *address && row.deposed == *deposed
                };
                let row = projected.state.rows.iter().find(is_it).unwrap();
                let span = usize::try_from(row.span.start).unwrap()..usize::try_from(row.span.end).unwrap();
                (row.clone(), &projected.fixture.body[span])
            });
            let objects: Vec<_> = objects.collect();
            let alone = project_machine(&mappings, &key, &objects);
            assert_eq!(alone.as_ref(), Some(machine), "{}: {}", projected.fixture.name, machine.address);
        }
    }
}

impl Projected {
    fn machines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let expected = self.fixture.expect.machines();
        let expected: BTreeMap<&str, &Value> =
            expected.iter().map(|machine| (machine["address"].as_str().unwrap(), machine)).collect();
        let mut found: BTreeMap<&str, &Machine> = BTreeMap::new();
        let mut names = BTreeSet::new();
        for machine in &self.projection.machines {
            if found.insert(machine.address.as_str(), machine).is_some() {
                lines.push(format!("{}: there twice", machine.address));
            }
            if !names.insert(machine.object_name.as_str()) {
                lines.push(format!(
                    "{}: its object name {} is not unique",
                    machine.address, machine.object_name
                ));
            }
        }
        for (address, expected) in &expected {
            match found.get(address) {
                Some(machine) => self.machine(expected, machine, &mut lines),
                None => lines.push(format!("{address}: no machine")),
            }
        }
        for address in found.keys().filter(|address| !expected.contains_key(*address)) {
            let no_machine = self.fixture.expect.not_machine_addresses().contains(address);
            let why = if no_machine { "is none on purpose" } else { "nobody expects it" };
            lines.push(format!("{address}: a machine, but {why}"));
        }
        for deposed in self.fixture.expect.0["deposed"].as_array().into_iter().flatten() {
            let holders = found
                .values()
                .filter(|machine| machine.provider_id.as_deref() == deposed["provider_id"].as_str());
            lines.extend(
                holders.map(|machine| format!("{}: is the deposed object {deposed}", machine.address)),
            );
        }
        lines
    }

    fn machine(&self, expected: &Value, machine: &Machine, lines: &mut Vec<String>) {
        let mut differ = |field: &str, expected: &str, found: &str| {
            lines.push(format!("{} {field}: expected {expected}, found {found}", machine.address));
        };
        let power = match expected["power"].as_str() {
            Some("unknown") | None => Value::Null,
            Some(power) => power.into(),
        };
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let number = |digits: Option<&str>| {
            digits.map_or(Value::Null, |digits| digits.parse::<u64>().map_or(digits.into(), Value::from))
        };
        let fields = [
            ("provider_id", text(machine.provider_id.as_deref())),
            ("instance_type", text(machine.instance_type.as_deref())),
            ("region", text(machine.region.as_deref())),
            ("zone", text(machine.zone.as_deref())),
            ("host", text(machine.zone.as_deref())),
            ("image", text(machine.image.as_deref())),
            ("hostname", text(machine.hostname.as_deref())),
            ("role", machine.role.map(Role::as_str).map_or(Value::Null, Value::from)),
            ("power", machine.recorded_power.map(Power::as_str).map_or(Value::Null, Value::from)),
            ("cpu", number(machine.cpus.as_ref().map(rezus_core::declared::resource::Decimal::as_str))),
            ("memory_mib", machine.memory_mib.map_or(Value::Null, Value::from)),
            ("tainted", machine.tainted.into()),
        ];
        for (field, found) in fields {
            let wanted = if field == "power" { Some(&power) } else { expected.get(field) };
            if let Some(wanted) = wanted.filter(|wanted| **wanted != found) {
                differ(field, &wanted.to_string(), &found.to_string());
            }
        }
        if let Some(name) = expected["name"].as_str().filter(|name| machine.name.as_deref() != Some(name)) {
            differ("name", name, &format!("{:?}", machine.name));
        }
        self.node_group(expected, machine, &mut differ);
        let known: BTreeSet<_> =
            machine.also_known_as.iter().map(|address| address.as_str().to_owned()).collect();
        let wanted = texts(&expected["also_known_as"]);
        if known != wanted {
            differ("also_known_as", &format!("{wanted:?}"), &format!("{known:?}"));
        }
        let ignored = ips(&expected["ignore_ips"]);
        for (field, kind) in
            [("private_ips", AddressType::InternalIp), ("public_ips", AddressType::ExternalIp)]
        {
            let found = machine.addresses.iter().filter(|address| address.kind == kind);
            let found: BTreeSet<IpAddr> = found.map(|address| address.address.parse().unwrap()).collect();
            let found: BTreeSet<_> = found.difference(&ignored).copied().collect();
            let wanted: BTreeSet<_> = ips(&expected[field]).difference(&ignored).copied().collect();
            if found != wanted {
                differ(field, &format!("{wanted:?}"), &format!("{found:?}"));
            }
        }
    }

    /// Groups are compared by their object names: the name itself, or a slug of it with a hash.
    fn node_group(&self, expected: &Value, machine: &Machine, differ: &mut dyn FnMut(&str, &str, &str)) {
        let wanted = expected["node_group"].as_str();
        let is_weak =
            expected["node_group_from"].as_str().is_some_and(|from| from.starts_with("resource name"));
        let slug = wanted.map(|name| name.to_ascii_lowercase().replace('_', "-"));
        let is_same = match (&slug, &machine.node_group) {
            (Some(slug), Some(found)) => {
                let hash = found.strip_prefix(&format!("{slug}-"));
                **found == **slug || hash.is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()))
            }
            (None, None) => true,
            (Some(_), None) => is_weak,
            (None, Some(_)) => false,
        };
        if !is_same {
            differ("node_group", &format!("{wanted:?}"), &format!("{:?}", machine.node_group));
        }
        if let Some(name) = &machine.node_group {
            let group = self.projection.node_groups.iter().find(|group| *group.object_name == **name);
            if !group.is_some_and(|group| group.machines.contains(&machine.object_name)) {
                differ("node_group", "a group that counts the machine", "none");
            }
        }
    }

    fn cluster(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (expected, found) = (&self.fixture.expect.0["cluster"], &self.projection.cluster);
        let fields = [
            ("name", &found.cluster_name),
            ("endpoint", &found.endpoint),
            ("kubernetes_version", &found.kubernetes_version),
            ("talos_installer_version", &found.talos_version),
        ];
        for (field, found) in fields {
            let is_open = expected.is_object() && expected.get(field).is_none();
            if !is_open && expected[field].as_str() != found.as_deref() {
                lines.push(format!("{field}: expected {}, found {found:?}", expected[field]));
            }
        }
        let wanted = texts(&self.fixture.expect.0["providers"]);
        let providers: BTreeSet<_> = found
            .providers
            .iter()
            .map(|provider| {
                let legacy = !provider.source.contains('/');
                let source = if legacy {
                    format!("provider.{}", provider.source)
                } else {
                    format!("provider[{:?}]", provider.source)
                };
                let alias = provider.alias.as_deref().map_or(String::new(), |alias| format!(".{alias}"));
                let key = provider.key.as_deref().map_or(String::new(), |key| format!("[{key:?}]"));
                format!("{source}{alias}{key}")
            })
            .collect();
        let wanted: BTreeSet<_> = wanted
            .iter()
            .map(|provider| provider[provider.find("provider").unwrap_or(0)..].to_owned())
            .collect();
        if providers != wanted {
            lines.push(format!("providers: expected {wanted:?}, found {providers:?}"));
        }
        lines
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn ips(list: &Value) -> BTreeSet<IpAddr> {
    texts(list).iter().map(|text| text.parse().unwrap()).collect()
}

/// Shapes that no fixture has, each with all that is made of it.
#[test]
fn what_no_fixture_has_comes_out_as_well() {
    let cases = [
        (
            "addresses by hcloud_server_network and floating IPs; ids are numbers on one side",
            r#"[["hcloud_server","a",{"id":"7","name":"n","network":[],"status":"off"}],
                ["hcloud_server_network","a",{"server_id":7,"ip":"10.0.0.7"}],
                ["hcloud_floating_ip","a",{"id":"1","server_id":7,"ip_address":"192.0.2.7"}],
                ["hcloud_floating_ip","b",{"id":"2","server_id":null,"ip_address":"192.0.2.8"}],
                ["hcloud_floating_ip_assignment","b",{"floating_ip_id":2,"server_id":7}]]"#,
            "n 7 stopped 10.0.0.7 +192.0.2.7 +192.0.2.8",
        ),
        (
            "AWS: tags in another case, address by association, spot instance, region by zone",
            r#"[["aws_instance","a",{"id":"i-1","tags":{"Name":"n","Role":"master"},"availability_zone":"eu-west-1b","public_ip":"","private_ip":"10.0.0.1","instance_state":"pending"}],
                ["aws_eip","a",{"id":"eipalloc-1","instance":"","public_ip":"192.0.2.1"}],
                ["aws_eip_association","a",{"allocation_id":"eipalloc-1","instance_id":"i-1","public_ip":""}],
                ["aws_spot_instance_request","s",{"id":"sir-1","spot_instance_id":"i-2","tags":null,"private_dns":"x.internal","arn":"arn:aws:ec2:us-east-2:0:x"}]]"#,
            "n i-1 controlplane eu-west-1 eu-west-1b changing 10.0.0.1 +192.0.2.1\nx.internal i-2 us-east-2",
        ),
        (
            "OCI: a reserved address takes the place of a stale one; secondary VNIC; machine.type in user data",
            r#"[["oci_core_instance","a",{"id":"o1","display_name":"n","private_ip":"10.0.0.1","public_ip":"192.0.2.9","state":"STOPPING","metadata":{"user_data":"bWFjaGluZToKICB0eXBlOiB3b3JrZXIK"},"shape_config":[{"ocpus":1.5,"memory_in_gbs":1.5}]}],
                ["data.oci_core_private_ips","a",{"ip_address":"10.0.0.1","private_ips":[{"id":"p1","ip_address":"10.0.0.1"}]}],
                ["oci_core_public_ip","a",{"id":"r1","private_ip_id":"p1","ip_address":"192.0.2.1"}],
                ["oci_core_vnic_attachment","a",{"instance_id":"o1","vnic_id":"v2","create_vnic_details":[{"private_ip":""}]}],
                ["data.oci_core_vnic","a",{"vnic_id":"v2","private_ip_address":"10.1.0.1","public_ip_address":"192.0.2.2"}]]"#,
            "n o1 worker changing 1.5cpu 1536MiB 10.0.0.1 10.1.0.1 +192.0.2.1 +192.0.2.2",
        ),
        (
            "libvirt since 0.9: identity, unit and addresses are elsewhere",
            r#"[["libvirt_domain","a",{"id":3,"uuid":"u-1","name":"n","memory":2,"memory_unit":"GiB","vcpu":2,"devices":{"disks":[{"source":{"file":{"file":"/a.img"}}}]}}],
                ["libvirt_domain","b",{"id":null,"uuid":"u-2","name":"m","memory":1048576,"memory_unit":null,"devices":{"disks":[]}}],
                ["data.libvirt_domain_interface_addresses","a",{"domain":"u-1","interfaces":[{"addrs":[{"addr":"192.168.122.7","type":"ipv4"},{"addr":"fe80::1","type":"ipv6"}]}]}]]"#,
            "m u-2 1024MiB\nn u-1 /a.img 2cpu 2048MiB 192.168.122.7",
        ),
        (
            "node pools are many machines",
            r#"[["digitalocean_kubernetes_node_pool","p",{"id":"x","name":"pool-b","size":"s","nodes":[{"id":"1","droplet_id":"11","name":"b-1","status":"running"},{"id":"2","droplet_id":"12","name":"b-2","status":"provisioning"}]}],
                ["digitalocean_kubernetes_cluster","c",{"id":"y","region":"fra1","node_pool":[{"name":"pool-a","size":"t","nodes":[{"id":"3","droplet_id":"13","name":"a-1","status":"running"}]}]}]]"#,
            "a-1 13 t worker fra1 running group=pool-a\nb-1 11 s worker running group=pool-b\nb-2 12 s worker changing group=pool-b",
        ),
        (
            "machines that no provider manages, and a Talos resource that describes one of them",
            r#"[["terraform_data","edge",{"input":{"value":{"rezus_kind":"Machine","name":"e-1","role":"cp","node_group":"edge","internal_ips":["10.9.0.1"],"external_ips":["192.0.2.1"],"cpus":"4","memory_mib":8192,"provider_id":7},"type":"dynamic"}}],
                ["terraform_data","plain",{"input":{"value":{"name":"no"},"type":"dynamic"}}],
                ["talos_machine","a",{"node":"10.9.0.1","image":"factory.talos.dev/x/abc:v1.12.0"}],
                ["talos_machine","b",{"node":"10.9.0.2","image":"factory.talos.dev/x/abc:v1.12.0"}]]"#,
            "- factory.talos.dev/x/abc:v1.12.0 10.9.0.2\ne-1 7 controlplane factory.talos.dev/x/abc:v1.12.0 4cpu 8192MiB 10.9.0.1 +192.0.2.1 group=edge aka=talos_machine.a",
        ),
        (
            "a single control plane keeps its address though the endpoint is on it; the role is lifted",
            r#"[["vultr_instance","a",{"id":"v","label":"n","main_ip":"192.0.2.5","v6_main_ip":"::","power_status":"running","image_id":"","os_id":0,"iso_id":"iso"}],
                ["data.talos_machine_configuration","c",{"cluster_name":"k","cluster_endpoint":"https://192.0.2.5:6443"}],
                ["talos_machine_configuration_apply","a",{"node":"192.0.2.5","machine_configuration":"machine:\n  type: controlplane\n  network:\n    hostname: h-1\n"}]]"#,
            "n v controlplane iso running +192.0.2.5 host=h-1 aka=talos_machine_configuration_apply.a",
        ),
        (
            "lists that mix, prefix lengths, old Azure machines",
            r#"[["linode_instance","a",{"id":"5","label":"n","type":"g6","region":"eu","status":"offline","ipv4":["192.0.2.6","192.168.1.6"],"ipv6":"2001:db8::6/128","tags":["worker"],"specs":[{"vcpus":2,"memory":4096}]}],
                ["azurerm_virtual_machine","o",{"id":"/o","name":"old","vm_size":"D2","location":"we","zones":["1"],"network_interface_ids":["/nic"]}],
                ["azurerm_network_interface","o",{"id":"/nic","private_ip_addresses":["10.0.0.3"],"ip_configuration":[{"public_ip_address_id":"/pip"}]}],
                ["azurerm_public_ip","o",{"id":"/pip","ip_address":"192.0.2.3"}]]"#,
            "n 5 g6 worker eu stopped 2cpu 4096MiB 192.168.1.6 +192.0.2.6 +2001:db8::6\nold /o D2 we 1 10.0.0.3 +192.0.2.3",
        ),
        (
            "Proxmox: role by the snippet that a machine is started with",
            r#"[["proxmox_virtual_environment_vm","a",{"id":"1","name":"n","node_name":"pve","started":true,"initialization":[{"user_data_file_id":"local:snippets/w.yaml","ip_config":[{"ipv4":[{"address":"10.0.0.4/24"}]}]}],"cpu":[{"cores":2,"sockets":2}]}],
                ["proxmox_virtual_environment_file","f",{"id":"local:snippets/w.yaml","source_raw":[{"data":"machine:\n  type: worker\n"}]}]]"#,
            "n 1 worker pve running 4cpu 10.0.0.4",
        ),
    ];
    let mappings = built_in();
    let mut differences = BTreeMap::new();
    for (what, objects, expected) in cases {
        let objects: Vec<(String, String, Value)> = serde_json::from_str(objects).unwrap();
        let resources = objects.iter().map(|(kind, name, attributes)| {
            let (mode, kind) =
                kind.strip_prefix("data.").map_or(("managed", kind.as_str()), |kind| ("data", kind));
            let instance = serde_json::json!({"schema_version": 0, "attributes": attributes});
            serde_json::json!({"mode": mode, "type": kind, "name": name, "instances": [instance]})
        });
        let state = serde_json::json!({"version": 4, "resources": resources.collect::<Vec<_>>()}).to_string();
        let Ok(Document::Plain(plain)) = read_with(state.as_bytes(), &|kind| mappings.secret_rules(kind))
        else {
            panic!("{what}: no state");
        };
        let projection = project(&mappings, VersionNumber::new(1).unwrap(), state.as_bytes(), &plain.rows);
        let found: BTreeSet<_> = projection.machines.iter().map(brief).collect();
        let found = found.into_iter().collect::<Vec<_>>().join("\n");
        if found != expected {
            differences.insert(
                what.to_owned(),
                vec![format!("expected {expected:?}"), format!("found    {found:?}")],
            );
        }
    }
    report(&differences);
}

/// Says what is known of a machine; its group only where that is no resource's name.
fn brief(machine: &Machine) -> String {
    let mut words = vec![machine.name.clone().unwrap_or_else(|| "-".to_owned())];
    words.extend(machine.provider_id.clone());
    words.extend(machine.instance_type.as_deref().map(ToOwned::to_owned));
    words.extend(machine.role.map(|role| role.as_str().to_owned()));
    let texts = [&machine.region, &machine.zone, &machine.image];
    words.extend(texts.into_iter().flatten().map(ToString::to_string));
    words.extend(machine.recorded_power.map(|power| power.as_str().to_owned()));
    words.extend(machine.cpus.as_ref().map(|cpus| format!("{cpus}cpu")));
    words.extend(machine.memory_mib.map(|memory| format!("{memory}MiB")));
    words.extend(machine.addresses.iter().filter_map(|address| match address.kind {
        AddressType::InternalIp => Some(address.address.clone()),
        AddressType::ExternalIp => Some(format!("+{}", address.address)),
        AddressType::Hostname => None,
    }));
    let is_named = machine.provenance.get("nodeGroup").is_some_and(|source| source.rule != "context name");
    words.extend(machine.node_group.as_ref().filter(|_| is_named).map(|group| format!("group={group}")));
    let is_talos =
        |source: rezus_core::declared::resource::Source| source.address.as_str().starts_with("talos");
    let lifted = machine.provenance.get("hostname").is_some_and(is_talos);
    words.extend(machine.hostname.as_ref().filter(|_| lifted).map(|host| format!("host={host}")));
    words.extend(machine.also_known_as.iter().map(|address| format!("aka={address}")));
    words.join(" ")
}
