//! Configurations that are uploaded: which are refused, and that a refusal changes nothing.

use super::{CONFIGURATION, TAR, archive, entry, run, server, shown};
use crate::answer::Answer;
use crate::server::{Server, Settings};

async fn upload(server: &Server, body: Vec<u8>) -> Answer {
    server.send_with("PUT", CONFIGURATION, &TAR, body).await
}

#[tokio::test]
async fn an_archive_that_leads_elsewhere_or_is_not_whole_is_refused_by_name() {
    let server = server().await;
    let good = archive(&["main.tf", "a/b.tf"]);
    upload(&server, good.clone()).await.expect(200, "a good one");
    let kept = shown(&server, "prod").await;
    let mut link = tar::Builder::new(Vec::new());
    entry(&mut link, "main.tf", tar::EntryType::Regular);
    entry(&mut link, "secrets", tar::EntryType::Symlink);
    for (body, piece) in [
        (link.into_inner().unwrap(), "secrets is neither a regular file nor a folder"),
        (archive(&["main.tf", "/etc/cron.d/x"]), "/etc/cron.d/x is no path below"),
        (archive(&["main.tf", "a/../../x.tf"]), "a/../../x.tf is no path below"),
        (archive(&["main.tf", "other.tf", "./main.tf"]), "./main.tf is in the archive more than once"),
        (archive(&["a/main.tf"]), "at the top of the archive"),
        (good[..good.len() - 700].to_vec(), "not whole"),
        (good[..good.len() - 512].to_vec(), "not whole"),
        (Vec::new(), "not whole"),
        (b"no archive at all".to_vec(), "not whole"),
    ] {
        let message = upload(&server, body).await.expect(422, piece).message();
        assert!(message.contains(piece), "{piece} is not in: {message}");
    }
    let json = server.send("PUT", CONFIGURATION, good.clone()).await.expect(415, "as JSON");
    assert!(json.message().contains("application/x-tar"));
    let strange = format!("{CONFIGURATION}?color=red");
    server.send_with("PUT", &strange, &TAR, good.clone()).await.expect(400, "a strange parameter");
    let long = format!("{CONFIGURATION}?revision={}", "v".repeat(257));
    server.send_with("PUT", &long, &TAR, good.clone()).await.expect(422, "a long revision");
    assert_eq!(shown(&server, "prod").await, kept);
    let nobody = CONFIGURATION.replace("prod", "nobody");
    let refused = server.send_with("PUT", &nobody, &TAR, good).await.expect(404, "no tenant");
    assert!(refused.message().contains("tenant create nobody"));
}

#[tokio::test]
async fn an_archive_may_be_longer_than_other_bodies_and_no_longer_than_its_own_limit() {
    let variables = vec![
        ("REZUS_RUNS__MAX_CONFIGURATION", "64KiB".to_owned()),
        ("REZUS_LIMITS__BODY", "4KiB".to_owned()),
    ];
    let server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    run(&server, &["tenant", "create", "prod"]).await.done();
    let names: Vec<String> = (0..60).map(|number| format!("{number}.tf")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fits = archive(&names);
    assert!(fits.len() > 60_000 && fits.len() <= 64 << 10, "{}", fits.len());
    upload(&server, fits).await.expect(200, "one that fits");
    let kept = shown(&server, "prod").await;
    let refused = upload(&server, archive(&[&names[..], &["x.tf", "y.tf", "z.tf", "za.tf"]].concat())).await;
    let message = refused.expect(413, "one that does not").message();
    assert!(message.contains("65536") && message.contains("runs.max_configuration"), "{message}");
    assert_eq!(shown(&server, "prod").await, kept);
    let long = format!(r#"{{"variables":{{"a":"{}"}}}}"#, "x".repeat(5_000));
    let refused = server.send("PATCH", "/rezus/v1/tenants/prod", long).await.expect(413, "another body");
    assert!(refused.message().contains("limits.body"));
}
