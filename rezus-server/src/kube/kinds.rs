//! Which kinds are served, under which names, with which columns: one table that discovery, schema, routes and tables
//! are made from.

/// The API group of what rezus declares.
pub const GROUP: &str = "rezuscloud.io";

/// Its version.
pub const VERSION: &str = "v1alpha1";

/// What can be done with what is only shown: a state is the one place where anything is declared.
const READ: &[&str] = &["get", "list", "watch"];

/// One kind.
#[derive(Debug)]
pub struct KindInfo {
    /// As `kind` of its objects.
    pub kind: &'static str,
    /// In paths: `machines`.
    pub plural: &'static str,
    /// What a user may also say: `machine`.
    pub singular: &'static str,
    /// Shorter names.
    pub short: &'static [&'static str],
    /// Whether it is of the core group `v1`, not of [`GROUP`].
    pub is_core: bool,
    /// Whether its objects are in a tenant's namespace.
    pub namespaced: bool,
    /// Whether it is listed by `kubectl get rezus`.
    pub in_category: bool,
    /// What can be done with its objects.
    pub verbs: &'static [&'static str],
    /// What can be asked of one object beside itself, or done with it.
    pub subresources: &'static [Subresource],
    /// Field labels that can be selected by, beside `metadata.name` and, where it is namespaced, `metadata.namespace`.
    pub fields: &'static [&'static str],
    /// The columns of its tables.
    pub columns: &'static [Column],
}

/// Something of an object that has a path of its own.
#[derive(Debug)]
pub struct Subresource {
    /// In paths: `status`.
    pub name: &'static str,
    /// The one thing that can be done with it: `get`, or `create` of what is done by POST.
    pub verb: &'static str,
}

const fn read(name: &'static str) -> Subresource {
    Subresource { name, verb: "get" }
}

const fn act(name: &'static str) -> Subresource {
    Subresource { name, verb: "create" }
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// The type of its cells: `string` or `integer`.
    pub cells: &'static str,
    /// `name` for the objects' name, nothing otherwise.
    pub format: &'static str,
    /// What it says.
    pub description: &'static str,
    /// Whether only `-o wide` shows it.
    pub wide: bool,
}

const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, cells: "string", format: "", description, wide: false }
}

const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { wide: true, ..text(name, description) }
}

const fn count(name: &'static str, description: &'static str) -> Column {
    Column { cells: "integer", ..text(name, description) }
}

const NAME: Column = Column { format: "name", ..text("Name", "The object's name.") };
const AGE: Column = text("Age", "How long ago the object appeared in the state.");

impl KindInfo {
    /// `v1`, or group and version.
    pub const fn api_version(&self) -> &'static str {
        if self.is_core { "v1" } else { "rezuscloud.io/v1alpha1" }
    }

    /// Tells whether it is the same kind as another.
    pub fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// Tells whether it has a `status`.
    pub fn has_status(&self) -> bool {
        self.subresources.iter().any(|subresource| subresource.name == "status")
    }

    /// Tells whether it stands for something that is observed.
    pub fn is_observed(&self) -> bool {
        [&TENANT, &NODE_GROUP, &MACHINE].into_iter().any(|kind| kind.is(self))
    }

    /// Tells whether its objects can be made.
    pub fn is_made(&self) -> bool {
        self.verbs.contains(&"create")
    }

    /// Its group: nothing for the core's.
    pub const fn group(&self) -> &'static str {
        if self.is_core { "" } else { GROUP }
    }

    /// As errors and rights name it: `machines.rezuscloud.io`, `namespaces`.
    pub fn qualified(&self) -> String {
        if self.is_core { self.plural.to_owned() } else { format!("{}.{GROUP}", self.plural) }
    }
}

/// A cluster.
pub static TENANT: KindInfo = KindInfo {
    kind: "Tenant",
    plural: "tenants",
    singular: "tenant",
    short: &["tn"],
    is_core: false,
    namespaced: false,
    in_category: true,
    verbs: READ,
    subresources: &[read("status"), read("kubeconfig"), read("talosconfig"), read("metrics")],
    fields: &[],
    columns: &[
        NAME,
        text("Phase", "Whether what the state declares is known, and what hinders it."),
        count("Machines", "How many machines the state declares."),
        text("Ready", "How many machines were observed ready, of those declared."),
        AGE,
        Column { wide: true, ..count("Groups", "How many node groups the state declares.") },
        Column { wide: true, ..count("Runs", "How many runs are kept.") },
        wide("Last-Run", "How the last run ended."),
        wide("Observed", "How long ago the cluster was last observed."),
    ],
};

/// A mapping.
pub static PROVIDER: KindInfo = KindInfo {
    kind: "Provider",
    plural: "providers",
    singular: "provider",
    short: &[],
    is_core: false,
    namespaced: false,
    in_category: false,
    verbs: READ,
    subresources: &[],
    fields: &[],
    columns: &[
        NAME,
        text("Source", "The provider's source address; the first of several."),
        text("Origin", "Whether the mapping is built in, or of which file."),
        text("Age", "How long ago the mapping was loaded."),
        Column { wide: true, ..count("Tenants", "How many tenants use it.") },
        Column { wide: true, ..count("Machines", "How many machines are made by it.") },
    ],
};

/// Machines of one purpose.
pub static NODE_GROUP: KindInfo = KindInfo {
    kind: "NodeGroup",
    plural: "nodegroups",
    singular: "nodegroup",
    short: &["ng"],
    is_core: false,
    namespaced: true,
    in_category: true,
    verbs: READ,
    subresources: &[read("status")],
    fields: &["spec.role", "spec.provider"],
    columns: &[
        NAME,
        text("Role", "The role of its machines."),
        count("Desired", "How many machines the state declares."),
        text("Observed", "How many of them were observed."),
        text("Ready", "How many of them were observed ready."),
        AGE,
        wide("Provider", "The mapping its machines are made by."),
        wide("Flavor", "The types of its machines."),
        wide("Region", "The regions of its machines."),
    ],
};

/// A machine.
pub static MACHINE: KindInfo = KindInfo {
    kind: "Machine",
    plural: "machines",
    singular: "machine",
    short: &["mc"],
    is_core: false,
    namespaced: true,
    in_category: true,
    verbs: READ,
    subresources: &[read("status"), read("provenance"), read("history"), read("metrics")],
    fields: &["spec.role", "spec.provider", "spec.nodeGroup"],
    columns: &[
        NAME,
        text("Role", "Its role in the cluster."),
        text("Address", "Where it is reached: an internal address before an external one before a name."),
        text("Provider", "The mapping it is made by."),
        text("Ready", "The condition Ready: True, False or Unknown."),
        text("Seen", "How long ago it was last observed."),
        AGE,
        wide("Group", "Its node group."),
        wide("Type", "The provider's type or flavour."),
        wide("Region", "The region."),
        wide("Zone", "The zone, or the host that carries it."),
        wide("Provider-ID", "The provider's ID."),
        wide("State-Address", "The address of the resource instance that declares it."),
    ],
};

/// One accepted state.
pub static STATE_VERSION: KindInfo = KindInfo {
    kind: "StateVersion",
    plural: "stateversions",
    singular: "stateversion",
    short: &["sv"],
    is_core: false,
    namespaced: true,
    in_category: false,
    verbs: READ,
    subresources: &[],
    fields: &[],
    columns: &[
        NAME,
        text("Serial", "The serial that the state says it has."),
        text("Writer", "The version of the tool that wrote it."),
        text("By", "Who wrote it."),
        text("Age", "How long ago it was written."),
        wide("Lineage", "The lineage that the state says it has."),
        Column { wide: true, ..count("Size", "Its length in bytes.") },
        wide("Operation", "The operation of the lock it was written under."),
        wide("Forced", "Whether it broke the rules of serial and lineage."),
    ],
};

/// A plan, apply, destroy or drift check.
pub static RUN: KindInfo = KindInfo {
    kind: "Run",
    plural: "runs",
    singular: "run",
    short: &[],
    is_core: false,
    namespaced: true,
    in_category: false,
    verbs: &["get", "list", "watch", "create"],
    subresources: &[read("status"), read("log"), act("approve"), act("cancel"), act("dismiss")],
    fields: &["status.phase"],
    columns: &[
        NAME,
        text("Op", "The operation."),
        text("Phase", "How far it is."),
        text("Changes", "How many resources are added, changed and removed."),
        text("Age", "How long ago it was asked for."),
        wide("Started", "When it began."),
        wide("Duration", "How long it took."),
        wide("Serial", "The serial of the state it left."),
        wide("By", "Who asked for it."),
    ],
};

/// A tenant, as Kubernetes clients look for it.
pub static NAMESPACE: KindInfo = KindInfo {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short: &["ns"],
    is_core: true,
    namespaced: false,
    in_category: false,
    verbs: READ,
    subresources: &[read("status")],
    fields: &["status.phase"],
    columns: &[
        NAME,
        text("Status", "Whether the tenant is there: Active."),
        text("Age", "How long ago the tenant was created."),
    ],
};

/// What happened to an object: refused writes of a state.
pub static EVENT: KindInfo = KindInfo {
    kind: "Event",
    plural: "events",
    singular: "event",
    short: &["ev"],
    is_core: true,
    namespaced: true,
    in_category: false,
    verbs: READ,
    subresources: &[],
    fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    columns: &[
        text("Last Seen", "How long ago it happened last."),
        text("Type", "Normal or Warning."),
        text("Reason", "Why, in one word."),
        text("Object", "What it happened to."),
        text("Message", "What happened."),
        Column { wide: true, ..NAME },
    ],
};

/// All kinds: those of [`GROUP`], then those of the core.
pub static KINDS: [&KindInfo; 8] =
    [&TENANT, &PROVIDER, &NODE_GROUP, &MACHINE, &STATE_VERSION, &RUN, &NAMESPACE, &EVENT];
