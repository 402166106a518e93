//! What is looked for among what was observed: taken from what is declared, as plain texts.

use rezus_core::client::MachineSpec;
use rezus_core::observed::matching::Claim;

/// The claim of a machine: by which of its texts it can be recognised.
pub(super) fn claim(name: &str, machine: &MachineSpec) -> Claim {
    Claim {
        name: name.to_owned(),
        provider_id: machine.provider_id.clone(),
        system_uuid: machine.provider_id.as_deref().and_then(uuid),
        addresses: machine.addresses.iter().map(|address| address.address.clone()).collect(),
        hostname: machine.hostname.clone().or_else(|| machine.name.clone()),
    }
}

/// The UUID that an ID of a provider is, of those whose IDs are the machine's own (libvirt, vSphere, Proxmox).
fn uuid(id: &str) -> Option<String> {
    let last = id.rsplit('/').next()?;
    uuid::Uuid::try_parse(last).ok().map(|uuid| uuid.hyphenated().to_string())
}
