//! What a generated state is to contain, in pieces that proptest can leave out one by one.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::address::{keys, modules, number_keys};
use super::json::{Escapes, Json, Layout, Style, raw};
use super::model::Key;

/// A whole state.
#[derive(Clone, Debug)]
pub(super) struct StatePlan {
    pub(super) serial: u64,
    pub(super) lineage: Option<String>,
    pub(super) writer: Option<String>,
    pub(super) outputs: Vec<OutputPlan>,
    pub(super) blocks: Vec<BlockPlan>,
    /// Which form of `check_results`.
    pub(super) checks: u8,
    /// Whether there are members that no reader knows.
    pub(super) unknown: bool,
    /// The seed by which members are put in another order than writers use.
    pub(super) disorder: Option<u64>,
    pub(super) style: Style,
}

/// One output.
#[derive(Clone, Debug)]
pub(super) struct OutputPlan {
    pub(super) sensitive: bool,
    /// Which form of value.
    pub(super) form: u8,
    pub(super) secret: SecretPlan,
}

/// One element of `resources[]`.
#[derive(Clone, Debug)]
pub(super) struct BlockPlan {
    pub(super) module: Vec<(String, Option<Key>)>,
    pub(super) data: bool,
    pub(super) resource_type: &'static str,
    pub(super) name: &'static str,
    /// An earlier block whose resource this one belongs to as well.
    pub(super) same_as: Option<Index>,
    pub(super) provider: ProviderPlan,
    pub(super) unknown: bool,
    pub(super) instances: Vec<InstancePlan>,
}

/// Where the provider is said.
#[derive(Clone, Debug)]
pub(super) enum ProviderPlan {
    /// On the block.
    Block(&'static str),
    /// On every instance, as OpenTofu does where a provider has `for_each`.
    Instances,
    /// Nowhere.
    Nowhere,
}

/// One instance: a current object, old generations, or both.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each left out on its own")]
pub(super) struct InstancePlan {
    pub(super) key: Option<Key>,
    /// How a number key is spelt.
    pub(super) key_text: String,
    pub(super) current: bool,
    pub(super) deposed: Vec<String>,
    pub(super) tainted: bool,
    pub(super) provider_key: String,
    pub(super) attributes: AttributesPlan,
    pub(super) unknown: bool,
    /// Which form of `sensitive_attributes` where nothing is marked.
    pub(super) no_marks: u8,
    pub(super) private: bool,
}

/// The attributes of an object.
#[derive(Clone, Debug)]
pub(super) enum AttributesPlan {
    Absent,
    Null,
    /// `attributes_flat`: those that can be said so.
    Flat(Vec<AttributePlan>),
    Object(Vec<AttributePlan>),
}

/// One attribute.
#[derive(Clone, Debug)]
pub(super) enum AttributePlan {
    /// Any value, with nothing marked.
    Plain(Json),
    /// A text that no reader may hide.
    Visible,
    /// A value that is marked.
    Marked(MarkPlan, SecretPlan),
    /// A string that holds a secret from anywhere in the state, and is not marked.
    Copy(Index, CopyPlan),
}

/// How a secret is marked.
#[derive(Clone, Debug)]
pub(super) enum MarkPlan {
    /// The attribute itself.
    Attribute,
    /// A member of a member.
    Nested,
    /// An element of a list.
    Element(u8),
    /// An element of a map.
    MapElement(String),
    /// An object with a secret in each of several places.
    Subtree,
    /// A member within a dynamically typed attribute, which the path does not name.
    ThroughWrapper,
    /// A dynamically typed attribute as a whole.
    Wrapper,
    /// An element of a set: the whole element is the index.
    SetElement,
    /// A number.
    Number,
    /// A string too short to be looked for elsewhere.
    Short,
    /// An attribute that is null.
    Null,
    /// A path that leads nowhere: all of the object is to be hidden.
    Nothing,
}

/// What a secret looks like.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretPlan {
    pub(super) shape: u8,
    pub(super) nonce: u64,
}

/// How a secret is copied into another string.
#[derive(Clone, Copy, Debug)]
pub(super) enum CopyPlan {
    Whole,
    Inside,
    Base64,
    /// In Base64 behind so many other bytes: any alignment.
    InsideBase64(usize),
    /// In Base64 for addresses, without padding, within a text.
    Header,
}

/// Returns a strategy of whole states.
pub(super) fn state() -> impl Strategy<Value = StatePlan> {
    let serial = prop_oneof![
        6 => 0_u64..1_000,
        1 => select(&[u64::MAX, 9_007_199_254_740_993, 9_223_372_036_854_775_808][..]),
    ];
    let lineage = prop_oneof![
        6 => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}".prop_map(Some),
        1 => Just(None),
        1 => select(&["", "legacy \"text\" \u{2028}\u{1f600}"][..]).prop_map(|text| Some(text.to_owned())),
    ];
    let writer = prop_oneof![
        4 => select(&["1.12.6", "1.11.4", "0.12.31", "1.13.0-dev", "1.6.0-beta1"][..]).prop_map(|text| Some(text.to_owned())),
        1 => Just(None),
    ];
    let text = (serial, lineage, writer);
    let parts = (prop::collection::vec(output(), 0..4), prop::collection::vec(block(), 0..7));
    let rest = (0..4_u8, any::<bool>(), prop::option::weighted(0.3, any::<u64>()), style());
    (text, parts, rest).prop_map(
        |((serial, lineage, writer), (outputs, blocks), (checks, unknown, disorder, style))| StatePlan {
            serial,
            lineage,
            writer,
            outputs,
            blocks,
            checks,
            unknown,
            disorder,
            style,
        },
    )
}

fn style() -> impl Strategy<Value = Style> {
    let layout = prop_oneof![
        3 => Just(Layout::Indented),
        3 => Just(Layout::Compact),
        1 => Just(Layout::Bare),
        1 => Just(Layout::Sparse),
    ];
    let escapes = prop_oneof![4 => Just(Escapes::Go), 1 => Just(Escapes::Ascii), 1 => Just(Escapes::Least)];
    (layout, escapes, any::<u64>()).prop_map(|(layout, escapes, seed)| Style { layout, escapes, seed })
}

fn output() -> impl Strategy<Value = OutputPlan> {
    (any::<bool>(), 0..5_u8, secret()).prop_map(|(sensitive, form, secret)| OutputPlan {
        sensitive,
        form,
        secret,
    })
}

fn secret() -> impl Strategy<Value = SecretPlan> {
    (0..6_u8, any::<u64>()).prop_map(|(shape, nonce)| SecretPlan { shape, nonce })
}

fn block() -> impl Strategy<Value = BlockPlan> {
    let types =
        ["hcloud_server", "aws_instance", "oci_core_instance", "terraform_data", "null_resource", "x_y-z"];
    let names = ["node", "worker-1", "gr\u{f6}\u{df}e", "this", "data", "module"];
    let providers = [
        r#"provider["registry.opentofu.org/hetznercloud/hcloud"]"#,
        r#"provider["registry.terraform.io/hashicorp/aws"].eu"#,
        r#"provider["terraform.io/builtin/terraform"]"#,
        r#"module.pool.provider["registry.opentofu.org/bpg/proxmox"].dc1"#,
        "provider.aws",
        "module.pool.provider.openstack.west",
    ];
    let provider = prop_oneof![
        6 => select(providers.to_vec()).prop_map(ProviderPlan::Block),
        1 => Just(ProviderPlan::Instances),
        1 => Just(ProviderPlan::Nowhere),
    ];
    let identity = (
        modules(),
        prop::bool::weighted(0.2),
        select(types.to_vec()),
        select(names.to_vec()),
        prop::option::weighted(0.25, any::<Index>()),
    );
    (identity, provider, prop::bool::weighted(0.2), instances()).prop_map(
        |((module, data, resource_type, name, same_as), provider, unknown, instances)| BlockPlan {
            module,
            data,
            resource_type,
            name,
            same_as,
            provider,
            unknown,
            instances,
        },
    )
}

/// Instances of one block: without a key, of `count`, of `for_each`, or all of these side by side.
fn instances() -> impl Strategy<Value = Vec<InstancePlan>> {
    let unkeyed = || Just((None, String::new())).boxed();
    let number = || number_keys().prop_map(|(number, text)| (Some(Key::Number(number)), text)).boxed();
    let text = || keys().prop_map(|key| (Some(Key::Text(key)), String::new())).boxed();
    let mixed = prop_oneof![unkeyed(), number(), text()].boxed();
    prop_oneof![
        2 => prop::collection::vec(instance(unkeyed()), 0..2),
        3 => prop::collection::vec(instance(number()), 0..6),
        3 => prop::collection::vec(instance(text()), 0..6),
        1 => prop::collection::vec(instance(mixed), 0..6),
    ]
}

fn instance(key: BoxedStrategy<(Option<Key>, String)>) -> impl Strategy<Value = InstancePlan> {
    let deposed = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec("[0-9a-f]{8}", 1..4)];
    let state = (prop::bool::weighted(0.9), deposed, prop::bool::weighted(0.15));
    let rest = (keys(), attributes(), prop::bool::weighted(0.2), 0..3_u8, any::<bool>());
    (key, state, rest).prop_map(
        |(
            (key, key_text),
            (current, deposed, tainted),
            (provider_key, attributes, unknown, no_marks, private),
        )| {
            InstancePlan {
                key,
                key_text,
                current,
                deposed,
                tainted,
                provider_key,
                attributes,
                unknown,
                no_marks,
                private,
            }
        },
    )
}

fn attributes() -> impl Strategy<Value = AttributesPlan> {
    let list = || prop::collection::vec(attribute(), 0..6);
    prop_oneof![
        1 => Just(AttributesPlan::Absent),
        1 => Just(AttributesPlan::Null),
        1 => list().prop_map(AttributesPlan::Flat),
        8 => list().prop_map(AttributesPlan::Object),
    ]
}

fn attribute() -> impl Strategy<Value = AttributePlan> {
    let mark = prop_oneof![
        6 => Just(MarkPlan::Attribute),
        2 => Just(MarkPlan::Nested),
        2 => (0..3_u8).prop_map(MarkPlan::Element),
        2 => keys().prop_map(MarkPlan::MapElement),
        2 => Just(MarkPlan::Subtree),
        2 => Just(MarkPlan::ThroughWrapper),
        1 => Just(MarkPlan::Wrapper),
        1 => Just(MarkPlan::SetElement),
        1 => Just(MarkPlan::Number),
        1 => Just(MarkPlan::Short),
        1 => Just(MarkPlan::Null),
        1 => Just(MarkPlan::Nothing),
    ];
    let copy = prop_oneof![
        Just(CopyPlan::Whole),
        Just(CopyPlan::Inside),
        Just(CopyPlan::Base64),
        (0..6_usize).prop_map(CopyPlan::InsideBase64),
        Just(CopyPlan::Header),
    ];
    prop_oneof![
        4 => value().prop_map(AttributePlan::Plain),
        2 => Just(AttributePlan::Visible),
        3 => (mark, secret()).prop_map(|(mark, secret)| AttributePlan::Marked(mark, secret)),
        2 => (any::<Index>(), copy).prop_map(|(of, copy)| AttributePlan::Copy(of, copy)),
    ]
}

/// Any value, also ones that a careless reader takes for parts of the format.
fn value() -> impl Strategy<Value = Json> {
    let numbers = [
        "0",
        "-1",
        "-0",
        "8080",
        "18446744073709551615",
        "123456789012345678901234567890",
        "0.0000001",
        "1e-7",
        "8.192e3",
        "1E+400",
        "10000000000000000000000000000000000000000",
    ];
    let texts = [
        "",
        "a",
        "10.0.0.4",
        "{\"instances\":[{",
        "]}]}",
        "\\",
        "\"",
        "\\\"",
        "\\u0000",
        "\0\u{1f}",
        "\u{2028}<&>",
        "\u{1f600}\u{6f22}",
        "index_key",
        "////",
        "\u{7f}",
    ];
    let leaf = prop_oneof![
        select(numbers.to_vec()).prop_map(raw),
        select(&["true", "false", "null"][..]).prop_map(raw),
        select(texts.to_vec()).prop_map(|text| Json::Text(text.to_owned())),
        keys().prop_map(Json::Text),
    ];
    let names = [
        "id",
        "instances",
        "resources",
        "sensitive_attributes",
        "attributes",
        "value",
        "type",
        "index_key",
        "deposed",
        "",
        "a/b~c",
        "\"",
        "serial",
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        let members = prop::collection::btree_map(select(names.to_vec()), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Json::List),
            members.prop_map(|members| {
                Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}
