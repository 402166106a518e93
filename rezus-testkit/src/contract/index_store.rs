//! The laws of `IndexStore`. An index store knows nothing of states: whatever it is given for a tenant it keeps, whether
//! another store holds that tenant or not.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::Fingerprint;
use rezus_core::declared::index::{INDEX_FORMAT, IndexHead, IndexRow, InstanceKey, Mode};
use rezus_core::declared::store::IndexStore;

use super::poll::drop_after;
use crate::sample::{address, indexed_body, row, tenant, version};

/// Storage of its own for one law.
#[async_trait]
pub trait IndexStoreFixture: Send + Sync {
    /// Opens a handle on the storage. A second one, while the first is in use, is another client; a second one after
    /// the first was dropped is a restart.
    async fn open(&self) -> Arc<dyn IndexStore>;
}

/// Makes a test of each law of `IndexStore`, in a module `index_store_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! index_store_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            index_store_laws,
            $crate::contract::index_store,
            $fixture,
            a_current_object_and_its_old_generations_are_told_apart,
            a_dropped_index_is_gone,
            a_dropped_replace_is_all_or_nothing,
            addresses_of_any_spelling_are_found,
            an_index_is_replaced_at_once,
            an_index_of_no_rows_is_an_index,
            every_fact_of_a_row_is_kept,
            reopening_keeps_the_index,
            rows_are_found_by_their_types,
            rows_come_in_the_order_of_their_place,
            what_is_not_indexed_is_none,
        );
    };
}

fn head(number: u64, rows: &[IndexRow]) -> IndexHead {
    IndexHead {
        version: version(number),
        sha256: Fingerprint::of(&number.to_le_bytes()).sha256,
        format: INDEX_FORMAT,
        rows: u64::try_from(rows.len()).unwrap(),
        secret_rules: Fingerprint::of(&(number + 1).to_le_bytes()).sha256,
    }
}

/// Nothing was indexed: nothing is found, and dropping it is no error.
pub async fn what_is_not_indexed_is_none(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let nobody = tenant("nobody");
    assert_eq!(store.head(&nobody).await.unwrap(), None);
    assert_eq!(store.rows(&nobody).await.unwrap(), None);
    assert_eq!(store.find(&nobody, &address("hcloud_server.a"), None).await.unwrap(), None);
    store.drop_index(&nobody).await.unwrap();
    assert_eq!(store.head(&nobody).await.unwrap(), None);
}

/// An index of a state without any object is there, and is not the same as none.
pub async fn an_index_of_no_rows_is_an_index(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    store.replace(&prod, head(3, &[]), Arc::default()).await.unwrap();
    assert_eq!(store.head(&prod).await.unwrap(), Some(head(3, &[])));
    assert_eq!(store.rows(&prod).await.unwrap(), Some((head(3, &[]), Vec::new())));
    assert_eq!(store.find(&prod, &address("hcloud_server.a"), None).await.unwrap(), None);
}

/// Rows come in the order of their place in the state, in whatever order they were given.
pub async fn rows_come_in_the_order_of_their_place(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let body = vec![b'x'; 4_000];
    let mut rows = Vec::new();
    for (number, position) in
        [(1, 7), (10, 0), (0, 2), (2, 0), (0, 10), (0, 9), (1, 0), (300, 1)].iter().enumerate()
    {
        rows.push(row(&body, &format!("n{number}"), *position, number * 10..number * 10 + 5));
    }
    store.replace(&prod, head(1, &rows), rows.clone().into()).await.unwrap();
    rows.sort_by_key(|row| row.position);
    assert_eq!(store.rows(&prod).await.unwrap(), Some((head(1, &rows), rows)));
}

/// Of some types come those rows alone, in the order of their place, and the head of all; of none that is there, none.
pub async fn rows_are_found_by_their_types(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    assert_eq!(store.rows_of_types(&prod, &["acme_disk"]).await.unwrap(), None);
    let mut rows = Vec::new();
    for (number, resource_type) in
        ["acme_disk", "acme_server", "acme_disk_image", "acme_disk"].into_iter().enumerate()
    {
        let position = (9 - u32::try_from(number).unwrap(), 0);
        let mut row = row(&[b'x'; 100], &format!("n{number}"), position, number * 10..number * 10 + 5);
        resource_type.clone_into(&mut row.resource_type);
        rows.push(row);
    }
    store.replace(&prod, head(1, &rows), rows.clone().into()).await.unwrap();
    let of = |numbers: &[usize]| {
        Some((head(1, &rows), numbers.iter().map(|number| rows[*number].clone()).collect::<Vec<_>>()))
    };
    for (types, expected) in [
        (&["acme_disk"][..], of(&[3, 0])),
        (&["acme_disk_image", "acme_server"], of(&[2, 1])),
        (&["acme_disk", "acme_server", "acme_disk_image", "acme_net"], of(&[3, 2, 1, 0])),
        (&["acme"], of(&[])),
        (&[], of(&[])),
    ] {
        assert_eq!(store.rows_of_types(&prod, types).await.unwrap(), expected, "{types:?}");
    }
}

/// Every fact of a row comes back exactly, alone and in the list.
pub async fn every_fact_of_a_row_is_kept(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let plain = row(&[b'x'; 10], "plain", (0, 0), 2..9);
    let named = |number: u32, change: &dyn Fn(&mut IndexRow)| {
        let mut odd = IndexRow { position: (number, 0), ..plain.clone() };
        odd.name = format!("odd{number}");
        odd.address = address(&format!("hcloud_server.odd{number}"));
        change(&mut odd);
        odd
    };
    let changes: [&dyn Fn(&mut IndexRow); 18] = [
        &|row| r#"module.a["x\"y"].module.b[0]"#.clone_into(&mut row.module),
        &|row| row.mode = Mode::Data,
        &|row| row.key = Some(InstanceKey::Number(0)),
        &|row| row.key = Some(InstanceKey::Number(i64::MAX)),
        &|row| row.key = Some(InstanceKey::Number(i64::MIN)),
        &|row| row.key = Some(InstanceKey::Text("0".to_owned())),
        &|row| row.key = Some(InstanceKey::Text(String::new())),
        &|row| {
            row.key = Some(InstanceKey::Text("'\"\\\0\n\u{2028}\u{e000}\u{1f600}${x}%{y}".to_owned()));
        },
        &|row| row.provider = String::new(),
        &|row| {
            r#"module.x.provider["registry.opentofu.org/bpg/proxmox"].dc1["k"]"#
                .clone_into(&mut row.provider);
        },
        &|row| row.tainted = true,
        &|row| row.position = (u32::MAX, u32::MAX),
        &|row| row.span = u64::from(u32::MAX)..u64::from(u32::MAX) + 70_000,
        &|row| row.checksum = 0,
        &|row| row.checksum = u32::MAX,
        &|row| row.masked = vec![String::new()],
        &|row| {
            row.masked = vec![
                "/attributes/a~1b~0c".to_owned(),
                "/attributes/l/0/ü'\"".to_owned(),
                "/x\0,y".to_owned(),
            ];
        },
        &|row| row.deposed = Some("00000000".to_owned()),
    ];
    let rows: Vec<IndexRow> = (0..).zip(changes).map(|(number, change)| named(number, change)).collect();
    store.replace(&prod, head(1, &rows), rows.clone().into()).await.unwrap();
    let mut sorted = rows.clone();
    sorted.sort_by_key(|row| row.position);
    assert_eq!(store.rows(&prod).await.unwrap(), Some((head(1, &rows), sorted)));
    for row in rows {
        let found = store.find(&prod, &row.address, row.deposed.as_deref()).await.unwrap();
        assert_eq!(found.map(|(_, row)| row), Some(row));
    }
}

/// One address may have a current object and any number of old generations: each is found by its own key.
pub async fn a_current_object_and_its_old_generations_are_told_apart(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let body = [b'x'; 100];
    let mut rows = vec![row(&body, "both", (0, 0), 0..5)];
    for (instance, (name, key)) in
        (1..).zip([("both", "0a1b2c3d"), ("both", "0A1B2C3D"), ("both", "ffffffff"), ("gone", "0a1b2c3d")])
    {
        let start = usize::try_from(instance).unwrap() * 10;
        let mut old = row(&body, name, (0, instance), start..start + 5);
        old.deposed = Some(key.to_owned());
        rows.push(old);
    }
    store.replace(&prod, head(1, &rows), rows.clone().into()).await.unwrap();
    for row in &rows {
        let found = store.find(&prod, &row.address, row.deposed.as_deref()).await.unwrap();
        assert_eq!(found, Some((head(1, &rows), row.clone())));
    }
    for (name, key) in
        [("gone", None), ("both", Some("")), ("both", Some("12345678")), ("gone", Some("ffffffff"))]
    {
        let absent = store.find(&prod, &address(&format!("hcloud_server.{name}")), key).await.unwrap();
        assert_eq!(absent, None, "{name} {key:?}");
    }
}

/// Addresses are compared byte for byte, whatever is in them.
pub async fn addresses_of_any_spelling_are_found(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let long = format!("hcloud_server.a[\"{}\"]", "k".repeat(5_000));
    let spellings = [
        "hcloud_server.a",
        "hcloud_server.A",
        "hcloud_server.a[0]",
        r#"hcloud_server.a["0"]"#,
        r#"hcloud_server.a[""]"#,
        r#"hcloud_server.a["it's; DROP TABLE rows; --"]"#,
        r#"hcloud_server.a["say \"hi\" \\ \n\t"]"#,
        r#"hcloud_server.a["$${x}%%{y}"]"#,
        r#"hcloud_server.a["%"]"#,
        r#"hcloud_server.a["_"]"#,
        "hcloud_server.a[\"e\u{301}\"]",
        "hcloud_server.a[\"\u{e9}\"]",
        "hcloud_server.a[\"\u{1f600}\u{6f22}\"]",
        r#"hcloud_server.a["\u2028\U000f0000"]"#,
        r#"module.m["a.b[0]"].data.hcloud_server.a[1]"#,
        &long,
    ];
    let body = vec![b'x'; 1_000];
    let mut rows = Vec::new();
    for (number, spelling) in (0_u32..).zip(spellings) {
        let start = usize::try_from(number).unwrap() * 10;
        let mut odd = row(&body, &format!("n{number}"), (number, 0), start..start + 5);
        odd.address = address(spelling);
        rows.push(odd);
    }
    store.replace(&prod, head(1, &rows), rows.clone().into()).await.unwrap();
    for row in &rows {
        let found = store.find(&prod, &row.address, None).await.unwrap();
        assert_eq!(found, Some((head(1, &rows), row.clone())));
    }
    for absent in [r#"hcloud_server.a["*"]"#, r#"hcloud_server.a["%%"]"#, "hcloud_server.b"] {
        assert_eq!(store.find(&prod, &address(absent), None).await.unwrap(), None, "{absent}");
    }
}

/// An index is replaced as a whole: nothing of the old one is left, and who reads meanwhile sees one of the two.
pub async fn an_index_is_replaced_at_once(fixture: &dyn IndexStoreFixture) {
    let (store, other) = (fixture.open().await, tenant("other"));
    let prod = tenant("prod");
    let (_, others) = indexed_body(5, 99);
    store.replace(&other, head(9, &others), others.clone().into()).await.unwrap();
    let index_of = |number: u64| indexed_body(if number.is_multiple_of(2) { 300 } else { 40 }, number).1;
    let first = index_of(1);
    store.replace(&prod, head(1, &first), first.into()).await.unwrap();

    let writer = fixture.open().await;
    let name = prod.clone();
    let writing = tokio::spawn(async move {
        for number in 2..=20 {
            let rows = index_of(number);
            writer.replace(&name, head(number, &rows), rows.into()).await.unwrap();
        }
    });
    loop {
        let ended = writing.is_finished();
        let (found, rows) = store.rows(&prod).await.unwrap().unwrap();
        let expected = index_of(found.version.get());
        assert_eq!(found, head(found.version.get(), &expected));
        assert!(rows == expected, "the rows are not those of version {}", found.version);
        let sought = &rows[rows.len() - 1].address;
        if let Some((of, row)) = store.find(&prod, sought, None).await.unwrap() {
            let expected = index_of(of.version.get());
            assert!(expected.contains(&row), "{} is not of version {}", row.address, of.version);
        }
        if ended {
            break;
        }
    }
    writing.await.unwrap();
    let last = index_of(20);
    assert_eq!(store.rows(&prod).await.unwrap(), Some((head(20, &last), last)));
    assert_eq!(store.find(&prod, &address("hcloud_server.node-19-0"), None).await.unwrap(), None);
    assert_eq!(store.rows(&other).await.unwrap(), Some((head(9, &others), others)));
}

/// A replace whose future is dropped, at any point, has happened wholly or not at all; it may still happen later.
pub async fn a_dropped_replace_is_all_or_nothing(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut possible = Vec::new();
    for polls in 0..12_usize {
        let number = u64::try_from(polls).unwrap() + 1;
        let (_, rows) = indexed_body(200, number);
        possible.push(number);
        let ended = drop_after(polls, store.replace(&prod, head(number, &rows), rows.into())).await;
        match store.rows(&prod).await.unwrap() {
            Some((found, rows)) => {
                assert!(possible.contains(&found.version.get()), "{found:?} was never asked for");
                let expected = indexed_body(200, found.version.get()).1;
                assert_eq!(found, head(found.version.get(), &expected));
                assert!(rows == expected, "after {polls} polls");
            }
            None => assert!(!ended, "a replace that had answered is gone"),
        }
    }
}

/// A dropped index is gone, and no other with it; it can be built again.
pub async fn a_dropped_index_is_gone(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let (prod, other) = (tenant("prod"), tenant("other"));
    let (_, rows) = indexed_body(3, 1);
    for name in [&prod, &other] {
        store.replace(name, head(1, &rows), rows.clone().into()).await.unwrap();
    }
    store.drop_index(&prod).await.unwrap();
    for store in [Arc::clone(&store), fixture.open().await] {
        assert_eq!(store.head(&prod).await.unwrap(), None);
        assert_eq!(store.rows(&prod).await.unwrap(), None);
        assert_eq!(store.find(&prod, &rows[0].address, None).await.unwrap(), None);
        assert_eq!(store.rows(&other).await.unwrap(), Some((head(1, &rows), rows.clone())));
    }
    store.replace(&prod, head(2, &rows), rows.clone().into()).await.unwrap();
    assert_eq!(store.rows(&prod).await.unwrap(), Some((head(2, &rows), rows)));
}

/// After a restart the index is as it was, or is missing as a whole: it is a cache. What is there is right. An index of
/// another format is given back as such, for its reader to refuse.
pub async fn reopening_keeps_the_index(fixture: &dyn IndexStoreFixture) {
    let store = fixture.open().await;
    let (prod, old) = (tenant("prod"), tenant("old"));
    let (_, rows) = indexed_body(50, 1);
    store.replace(&prod, head(4, &rows), rows.clone().into()).await.unwrap();
    let of_old = IndexHead { format: INDEX_FORMAT + 1, ..head(4, &rows) };
    store.replace(&old, of_old, rows.clone().into()).await.unwrap();
    drop(store);
    let store = fixture.open().await;
    if let Some(found) = store.rows(&prod).await.unwrap() {
        assert_eq!(found, (head(4, &rows), rows));
        assert_eq!(store.head(&prod).await.unwrap(), Some(head(4, &found.1)));
    }
    assert!(store.head(&old).await.unwrap().is_none_or(|head| head == of_old));
}
