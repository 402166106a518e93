//! Resource versions over restarts.

use super::{API, two_tenants};
use crate::in_process::InProcess;

#[tokio::test]
async fn resource_versions_never_go_backwards_whatever_the_clock_says() {
    let version = async |plane: &InProcess| {
        let list = plane.get(&format!("{API}/machines")).await.expect(200, "machines").json();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        let items = list["items"].as_array().unwrap();
        let least =
            items.iter().map(|item| item["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap());
        (least.min().unwrap_or(version), version)
    };
    let mut plane = two_tenants().await;
    plane.clock.advance(std::time::Duration::from_hours(1));
    let (_, mut last) = version(&plane).await;
    for _ in 0..3 {
        // The clock of each stands at the same moment, an hour before the first one's.
        plane = plane.restarted();
        let (least, newest) = version(&plane).await;
        assert!(least > last, "{least} after {last}");
        // A watch from before is told to begin anew.
        let mut events =
            plane.watch(&format!("{API}/machines?watch=1&resourceVersion={last}"), "application/json").await;
        assert_eq!(events.next().await["object"]["code"], 410);
        last = newest;
    }
}
