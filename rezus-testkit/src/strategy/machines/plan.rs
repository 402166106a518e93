//! What a state with machines is to contain, in pieces that proptest can leave out one by one.

use proptest::prelude::*;
use proptest::sample::select;
use rezus_core::declared::resource::Role;

use super::super::address::keys;

/// A whole state.
#[derive(Clone, Debug)]
pub(super) struct StatePlan {
    pub(super) pools: Vec<PoolPlan>,
    /// Machines that nothing but Talos knows.
    pub(super) bare: Vec<Vec<ApplyPlan>>,
    pub(super) noise: Vec<NoisePlan>,
}

/// A block of machines.
#[derive(Clone, Debug)]
pub(super) struct PoolPlan {
    pub(super) provider: Provider,
    /// Which module.
    pub(super) module: usize,
    pub(super) keys: Keys,
    pub(super) machines: Vec<MachinePlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    Hcloud,
    OpenStack,
    Aws,
    Proxmox,
    TerraformData,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Of the pool only the first machine is made.
    None,
    Count,
    ForEach,
}

/// A machine.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each left out on its own")]
pub(super) struct MachinePlan {
    pub(super) key: String,
    pub(super) name: Name,
    pub(super) id: Id,
    pub(super) label: Option<&'static str>,
    pub(super) group: Option<&'static str>,
    /// Whether the provider knows the host's name.
    pub(super) hostname: bool,
    /// A role in a hidden document.
    pub(super) document: Option<Role>,
    /// Whether addresses from within are an object of their own, or absent where there is no such object.
    pub(super) apart: bool,
    pub(super) external: External,
    pub(super) odd: OddAddress,
    pub(super) deposed: bool,
    pub(super) tainted: bool,
    pub(super) applies: Vec<ApplyPlan>,
}

/// What is in the place of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Plain,
    /// Not a label.
    Odd,
    Null,
    /// A list of two.
    List,
    /// An object.
    Object,
    Marked,
    /// A text that holds another object's secret.
    Copy,
}

/// What is in the place of the ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Text,
    Number,
    Null,
    Marked,
}

/// Where the addresses from outside are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum External {
    Nowhere,
    /// In the machine's own object.
    Own,
    /// In an object that refers to the machine.
    Joined,
    /// In one that is joined by a further one.
    Far,
    /// In one that refers to the machine, and is in another module.
    Elsewhere,
}

/// What else is in a list of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OddAddress {
    None,
    LinkLocal,
    Object,
    Marked,
}

/// A Talos configuration that is applied to a machine.
#[derive(Clone, Debug)]
pub(super) struct ApplyPlan {
    pub(super) key: ApplyKey,
    /// To which of the machine's addresses.
    pub(super) to: usize,
    /// Whether the address is spelt as nobody else does.
    pub(super) respelt: bool,
    pub(super) data: Data,
    /// The role in its hidden configuration.
    pub(super) document: Option<Role>,
    /// Whether that configuration names the host.
    pub(super) hostname: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplyKey {
    /// `n3-0`
    Name,
    /// `edge/30`
    Group,
    /// `1030`
    Digits,
}

/// Which data sources it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    None,
    Gone,
    ControlPlane,
    Worker,
    /// Both of these.
    Both,
    /// One whose instances do not say the same.
    Mixed,
}

/// An object that is no machine.
#[derive(Clone, Debug)]
pub(super) struct NoisePlan {
    pub(super) form: u8,
    pub(super) module: usize,
    pub(super) count: usize,
}

/// Returns a strategy of whole states.
pub(super) fn state() -> impl Strategy<Value = StatePlan> {
    let pools = prop::collection::vec(pool(), 0..4);
    let bare = prop::collection::vec(prop::collection::vec(apply(), 1..3), 0..2);
    let noise =
        (0..6_u8, 0..4_usize, 1..3_usize).prop_map(|(form, module, count)| NoisePlan { form, module, count });
    (pools, bare, prop::collection::vec(noise, 0..3)).prop_map(|(pools, bare, noise)| StatePlan {
        pools,
        bare,
        noise,
    })
}

fn pool() -> impl Strategy<Value = PoolPlan> {
    let providers =
        [Provider::TerraformData, Provider::Hcloud, Provider::OpenStack, Provider::Aws, Provider::Proxmox];
    let keys = select(&[Keys::None, Keys::Count, Keys::ForEach][..]);
    (select(providers.to_vec()), 0..4_usize, keys, prop::collection::vec(machine(), 1..3))
        .prop_map(|(provider, module, keys, machines)| PoolPlan { provider, module, keys, machines })
}

fn role() -> impl Strategy<Value = Option<Role>> {
    prop::option::of(select(&[Role::ControlPlane, Role::Worker][..]))
}

fn machine() -> impl Strategy<Value = MachinePlan> {
    let name = prop_oneof![
        8 => Just(Name::Plain),
        7 => select(&[Name::Odd, Name::Null, Name::List, Name::Object, Name::Marked, Name::Copy][..]),
    ];
    let id =
        prop_oneof![5 => Just(Id::Text), 3 => Just(Id::Number), 1 => Just(Id::Null), 1 => Just(Id::Marked)];
    let key = prop_oneof![
        2 => keys(),
        1 => select(&["cp/0", "cp/1", "wk-2/17", "cp/", "9/1"][..]).prop_map(str::to_owned),
    ];
    let labels = ["controlplane", "worker", "control-plane", "Master", "cp", "agent", "gpu"];
    let label = prop::option::of(select(labels.to_vec()));
    let group = prop::option::weighted(0.4, select(&["pool", "cp", "Pool B"][..]));
    let external =
        select(&[External::Nowhere, External::Own, External::Joined, External::Far, External::Elsewhere][..]);
    let odd = prop_oneof![
        4 => Just(OddAddress::None),
        3 => select(&[OddAddress::LinkLocal, OddAddress::Object, OddAddress::Marked][..]),
    ];
    let says = (key, name, id, label, group, any::<bool>(), role());
    let is = (any::<bool>(), external, odd, prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    (says, is, prop::collection::vec(apply(), 0..3)).prop_map(
        |(
            (key, name, id, label, group, hostname, document),
            (apart, external, odd, deposed, tainted),
            applies,
        )| MachinePlan {
            key,
            name,
            id,
            label,
            group,
            hostname,
            document,
            apart,
            external,
            odd,
            deposed,
            tainted,
            applies,
        },
    )
}

fn apply() -> impl Strategy<Value = ApplyPlan> {
    let key = select(&[ApplyKey::Name, ApplyKey::Group, ApplyKey::Digits][..]);
    let data =
        select(&[Data::None, Data::Gone, Data::ControlPlane, Data::Worker, Data::Both, Data::Mixed][..]);
    (key, 0..3_usize, any::<bool>(), data, role(), prop::bool::weighted(0.3)).prop_map(
        |(key, to, respelt, data, document, hostname)| ApplyPlan {
            key,
            to,
            respelt,
            data,
            document,
            hostname,
        },
    )
}
