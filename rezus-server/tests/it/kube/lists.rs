//! Lists and objects, in every form.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{API, TABLE, get_as, names, two_tenants};
use crate::in_process::{InProcess, local};
use crate::projection::machines;

#[tokio::test]
async fn a_table_has_the_columns_of_its_kind_and_rows_that_clients_can_sort() {
    let plane = two_tenants().await;
    plane.clock.advance(std::time::Duration::from_secs(451));
    let table = get_as(&plane, TABLE, &format!("{API}/machines")).await.expect(200, "table").json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&"Table".into(), &"meta.k8s.io/v1".into()));
    let columns = table["columnDefinitions"].as_array().unwrap();
    let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    let shown = ["Name", "Role", "Address", "Provider", "Ready", "Seen", "Age"];
    let wide = ["Group", "Type", "Region", "Zone", "Provider-ID", "State-Address"];
    assert_eq!(names, [&shown[..], &wide].concat());
    for column in columns {
        assert_eq!(column.as_object().unwrap().len(), 5, "{column}");
        let is_wide = wide.contains(&column["name"].as_str().unwrap());
        assert_eq!(column["priority"], u8::from(is_wide));
    }
    let rows = table["rows"].as_array().unwrap();
    let cells: Vec<&Value> = rows.iter().map(|row| &row["cells"]).collect();
    let none = "<none>";
    assert_eq!(
        cells,
        [
            &json!([
                "x",
                "worker",
                none,
                "terraform",
                "Unknown",
                "<unknown>",
                "7m31s",
                "edge",
                none,
                none,
                none,
                none,
                "terraform_data.edge[\"x\"]"
            ]),
            &json!([
                "a",
                "worker",
                "10.0.0.1",
                "terraform",
                "Unknown",
                "<unknown>",
                "7m31s",
                "pool",
                none,
                none,
                "one",
                none,
                "terraform_data.edge[\"a\"]"
            ]),
            &json!([
                "b",
                "worker",
                "198.51.100.2",
                "terraform",
                "Unknown",
                "<unknown>",
                "7m31s",
                "rest",
                none,
                none,
                none,
                none,
                "terraform_data.edge[\"b\"]"
            ]),
            &json!([
                "c",
                "controlplane",
                "c.example",
                "terraform",
                "Unknown",
                "<unknown>",
                "7m31s",
                "edge",
                none,
                none,
                none,
                none,
                "terraform_data.edge[\"c\"]"
            ]),
        ]
    );
    for row in rows {
        let object = &row["object"];
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&"PartialObjectMetadata".into(), &"meta.k8s.io/v1".into())
        );
        assert!(object["metadata"]["namespace"].is_string() && object.get("spec").is_none(), "{object}");
    }
    let with = async |include: &str| {
        let target = format!("{API}/namespaces/web/machines?includeObject={include}");
        get_as(&plane, TABLE, &target).await.expect(200, include).json()["rows"][0]["object"].clone()
    };
    assert_eq!(with("Object").await["spec"]["zone"], "one");
    assert_eq!(with("None").await, Value::Null);
    let one = get_as(&plane, TABLE, &format!("{API}/namespaces/web/machines/a/status"))
        .await
        .expect(200, "one")
        .json();
    assert_eq!((&one["rows"][0]["cells"], one["rows"].as_array().unwrap().len()), (cells[1], 1));
}

#[tokio::test]
async fn every_kind_is_listed_in_every_form_with_as_many_cells_as_columns() {
    let plane = two_tenants().await;
    plane.send("LOCK", "/state/web", "no lock info").await.expect(400, "a refusal");
    for (plural, api, count) in [
        ("tenants", API, 2),
        ("nodegroups", API, 4),
        ("machines", API, 4),
        ("stateversions", API, 2),
        ("runs", API, 0),
        ("namespaces", "/api/v1", 2),
        ("events", "/api/v1", 1),
    ] {
        let target = format!("{api}/{plural}");
        let items = plane.get(&target).await.expect(200, plural).items();
        assert_eq!(items.len(), count, "{plural}");
        let table = get_as(&plane, TABLE, &target).await.json();
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        for row in table["rows"].as_array().unwrap() {
            assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{row}");
        }
        assert_eq!(table["rows"].as_array().unwrap().len(), count, "{plural}");
        let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let partial = get_as(&plane, accept, &target).await.expect(200, plural).json();
        assert_eq!(partial["kind"], "PartialObjectMetadataList");
        let metadata: Vec<_> =
            partial["items"].as_array().unwrap().iter().map(|item| &item["metadata"]).collect();
        assert_eq!(metadata, items.iter().map(|item| &item["metadata"]).collect::<Vec<_>>(), "{plural}");
        for item in &items {
            let version = item["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
            let list = table["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
            assert!(0 < version && version <= list && list < 1 << 53, "{version} {list}");
        }
    }
    // Mappings are there without any state.
    let providers = plane.get(&format!("{API}/providers")).await.expect(200, "providers").items();
    assert!(names(&providers).contains(&"hcloud"));
    let table = get_as(&plane, TABLE, &format!("{API}/providers/terraform")).await.json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), table["columnDefinitions"].as_array().unwrap().len());
    assert_eq!(cells[4..], [json!(2), json!(4)], "tenants and machines that use it");
}

#[tokio::test]
async fn selectors_select() {
    let plane = two_tenants().await;
    let found = async |query: &str| {
        let answer = plane.get(&format!("{API}/machines?{query}")).await.expect(200, query);
        names(&answer.items()).join(" ")
    };
    for (query, expected) in [
        ("labelSelector=rezuscloud.io/role%3Dworker", "x a b"),
        ("labelSelector=rezuscloud.io/role!%3Dworker", "c"),
        ("labelSelector=rezuscloud.io/tenant%20in%20(web,nobody),!nothing", "a b c"),
        ("labelSelector=rezuscloud.io/node-group%20notin%20(pool,%20edge)", "b"),
        ("fieldSelector=metadata.name%3Da", "a"),
        ("fieldSelector=metadata.namespace!%3Dweb", "x"),
        ("fieldSelector=spec.role%3Dworker,spec.nodeGroup%3Drest", "b"),
        ("fieldSelector=spec.provider%3Dterraform&labelSelector=rezuscloud.io/role%3Dcontrolplane", "c"),
        ("labelSelector=&fieldSelector=&unknown=1&limit=0", "x a b c"),
    ] {
        assert_eq!(found(query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn long_answers_are_packed_for_those_who_can_unpack_them() {
    let plane = InProcess::new();
    let named: Vec<String> = (0..1_500).map(|number| format!("m{number:04}")).collect();
    let all: Vec<_> = named.iter().map(|name| (name.as_str(), json!({ "name": name }))).collect();
    plane.post("web", machines(1, &all)).await.expect(200, "POST");
    let target = format!("{API}/machines");
    let plain = plane.get(&target).await.expect(200, "plain");
    assert!(plain.body.len() > 512 << 10 && plain.header("content-encoding").is_none());
    let headers = [("accept-encoding", "gzip")];
    let packed = plane.send_as(local(), "GET", &target, &headers, "").await.expect(200, "packed");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    GzDecoder::new(&*packed.body).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain.body && packed.body.len() < plain.body.len() / 4);
    let short =
        plane.send_as(local(), "GET", &format!("{target}?limit=5"), &headers, "").await.expect(200, "short");
    assert_eq!(short.header("content-encoding"), None);
}

#[tokio::test]
async fn forms_that_are_none_are_refused() {
    let plane = two_tenants().await;
    for accept in ["application/yaml", "application/vnd.kubernetes.protobuf", "text/html"] {
        let answer = get_as(&plane, accept, &format!("{API}/machines")).await.expect(406, accept);
        assert_eq!(answer.json()["reason"], "NotAcceptable");
    }
    // An object's metadata is no form of a list.
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    get_as(&plane, accept, &format!("{API}/machines")).await.expect(406, accept);
    let one =
        get_as(&plane, accept, &format!("{API}/namespaces/web/machines/a")).await.expect(200, accept).json();
    assert_eq!((&one["kind"], one.get("spec")), (&"PartialObjectMetadata".into(), None));
}

#[tokio::test]
async fn what_an_encrypted_state_declared_before_is_listed_by_name() {
    let plane = two_tenants().await;
    assert_eq!(plane.get(&format!("{API}/namespaces/web/machines")).await.items().len(), 3);
    let encrypted = rezus_testkit::fixture::state("tofu-encrypted");
    plane.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    assert!(plane.get(&format!("{API}/namespaces/web/machines")).await.items().is_empty());
    plane.post("other", encrypted.body).await.expect(409, "another lineage");
    plane.send("DELETE", "/state/other", "").await.expect(200, "DELETE");
    let fresh = InProcess::new();
    let body = rezus_testkit::fixture::state("tofu-encrypted").body;
    fresh.post("web", body).await.expect(200, "POST");
    let listed = fresh.get(&format!("{API}/namespaces/web/machines")).await.expect(200, "list");
    assert!(listed.items().is_empty());
    assert!(listed.header("warning").unwrap().contains("encrypted"), "{:?}", listed.header("warning"));
}

#[tokio::test]
async fn what_is_said_of_a_version_after_it_was_written_hinders_no_list() {
    let plane = two_tenants().await;
    let lists = [format!("{API}/namespaces/web/machines"), format!("{API}/machines")];
    for pin in [r#"{"pinned":true}"#, r#"{"pinned":false}"#] {
        assert_eq!(plane.get(&lists[0]).await.expect(200, "before").items().len(), 3);
        let json = [("content-type", "application/json")];
        let pinned = plane.send_as(local(), "PATCH", "/rezus/v1/tenants/web/versions/1", &json, pin).await;
        pinned.expect(200, pin);
        for (list, count) in lists.iter().zip([3, 4]) {
            assert_eq!(plane.get(list).await.expect(200, pin).items().len(), count);
        }
    }
}

#[tokio::test]
async fn a_version_is_projected_once_however_many_ask_for_it_at_once() {
    let plane = InProcess::new();
    let projections = async || {
        let metrics = plane.get("/metrics").await.expect(200, "metrics");
        let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
        let count = metrics.lines().find_map(|line| line.strip_prefix("rezus_projections_total "));
        count.unwrap().parse::<u64>().unwrap()
    };
    let (all, of_one) = (format!("{API}/machines"), format!("{API}/namespaces/web/machines"));
    for serial in 1..=3 {
        plane.post("web", super::web(serial, "one")).await.expect(200, "POST");
        let answers = tokio::join!(plane.get(&all), plane.get(&of_one), plane.get(&all), plane.get(&of_one));
        for answer in [answers.0, answers.1, answers.2, answers.3] {
            assert_eq!(answer.expect(200, "machines").items().len(), 3);
        }
        assert_eq!(projections().await, serial);
        plane.get(&all).await.expect(200, "machines");
        assert_eq!(projections().await, serial, "nothing changed");
    }
}
