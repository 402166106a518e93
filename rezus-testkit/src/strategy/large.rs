//! Large states for benchmarks: the size and shape of real ones, the same bytes for the same seed.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::noise::Noise;

/// How many instances a resource has, in turn: one without a key, some by `count`, some by `for_each`, some by
/// `for_each` within a module with a key.
const BLOCK_SIZES: [usize; 4] = [1, 40, 25, 60];

/// Returns a state of `instances` servers as Terraform writes it: indented, some 2.3 kB of attributes each, every tenth
/// with 2 to 4 kB of user data besides; 20,000 of them make about 50 MB. Nothing is marked as a secret.
///
/// Takes about a second for 100 MB with optimisation.
pub fn large_state(instances: usize, seed: u64) -> Vec<u8> {
    large_state_with_secrets(instances, seed, 0)
}

/// Returns such a state where `secrets` instances, evenly spread, have a password that is marked, and whose user data,
/// where they have one, repeats it.
///
/// A password reads `canary-` and 24 digits.
pub fn large_state_with_secrets(instances: usize, seed: u64, secrets: usize) -> Vec<u8> {
    let mut large = Large { out: Vec::with_capacity(instances * 2_700 + 400), noise: Noise::new(seed) };
    large.push("{\n  \"version\": 4,\n  \"terraform_version\": \"1.11.4\",\n  \"serial\": ");
    large.push(&(seed % 10_000).to_string());
    large.push(",\n  \"lineage\": \"");
    let lineage = large.uuid();
    large.push(&lineage);
    large.push("\",\n  \"outputs\": {\n    \"cluster\": {\n      \"value\": \"large.example\",\n      \"type\": \"string\"\n    }\n  },\n  \"resources\": [");
    let every = instances.checked_div(secrets).unwrap_or(usize::MAX).max(1);
    let mut done = 0;
    let mut block = 0;
    while done < instances {
        let kind = block % BLOCK_SIZES.len();
        let size = BLOCK_SIZES[kind].min(instances - done);
        large.push(if block == 0 { "\n    {\n" } else { ",\n    {\n" });
        if kind == 3 {
            large.push(&format!("      \"module\": \"module.pool[\\\"eu/{block}\\\"]\",\n"));
        }
        large.push(&format!(
            "      \"mode\": \"managed\",\n      \"type\": \"aws_instance\",\n      \"name\": \"node-{block}\",\n      \
             \"provider\": \"provider[\\\"registry.terraform.io/hashicorp/aws\\\"]\",\n      \"instances\": ["
        ));
        for at in 0..size {
            large.push(if at == 0 { "\n        {\n" } else { ",\n        {\n" });
            match kind {
                0 => {}
                1 => large.push(&format!("          \"index_key\": {at},\n")),
                _ => large.push(&format!("          \"index_key\": \"zone-{}/{at}\",\n", at % 3)),
            }
            let number = done + at;
            large.instance(number, number.is_multiple_of(every) && number / every < secrets);
        }
        large.push("\n      ]\n    }");
        done += size;
        block += 1;
    }
    large.push(if block == 0 { "],\n" } else { "\n  ],\n" });
    large.push("  \"check_results\": null\n}\n");
    large.out
}

struct Large {
    out: Vec<u8>,
    noise: Noise,
}

impl Large {
    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn hex(&mut self) -> String {
        format!("{:016x}0", self.noise.next())
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.hex(), self.hex());
        format!("{}-{}-4{}-8{}-{}", &high[..8], &high[8..12], &high[12..15], &low[..3], &low[4..16])
    }

    fn instance(&mut self, number: usize, secret: bool) {
        let id = format!("i-{}", self.hex());
        let (subnet, group, interface, volume) = (self.hex(), self.hex(), self.hex(), self.hex());
        let (a, b, c) = (number / 65_536, number / 256 % 256, number % 256);
        let password = secret.then(|| format!("canary-{:024}", self.noise.next()));
        let user_data = number.is_multiple_of(10).then(|| self.user_data(password.as_deref()));
        let user_data = user_data.map_or_else(|| "null".to_owned(), |data| format!("\"{data}\""));
        let quoted =
            password.as_ref().map_or_else(|| "\"\"".to_owned(), |password| format!("\"{password}\""));
        let marks = if secret {
            "[\n            [\n              {\n                \"type\": \"get_attr\",\n                \"value\": \"password_data\"\n              }\n            ]\n          ]"
        } else {
            "[]"
        };
        self.push(&format!(
            r#"          "schema_version": 1,
          "attributes": {{
            "ami": "ami-{}",
            "arn": "arn:aws:ec2:eu-central-1:000000000000:instance/{id}",
            "associate_public_ip_address": false,
            "availability_zone": "eu-central-1{}",
            "cpu_core_count": 4,
            "disable_api_termination": false,
            "ebs_optimized": true,
            "get_password_data": false,
            "iam_instance_profile": "node-{b}",
            "id": "{id}",
            "instance_state": "running",
            "instance_type": "m6i.xlarge",
            "ipv6_addresses": [],
            "key_name": "ops",
            "monitoring": false,
            "password_data": {quoted},
            "primary_network_interface_id": "eni-{interface}",
            "private_dns": "ip-10-{a}-{b}-{c}.eu-central-1.compute.internal",
            "private_ip": "10.{a}.{b}.{c}",
            "public_dns": "",
            "public_ip": "",
            "root_block_device": [
              {{
                "delete_on_termination": true,
                "device_name": "/dev/xvda",
                "encrypted": true,
                "iops": 3000,
                "tags": {{}},
                "throughput": 125,
                "volume_id": "vol-{volume}",
                "volume_size": 100,
                "volume_type": "gp3"
              }}
            ],
            "secondary_private_ips": [],
            "security_groups": [],
            "source_dest_check": true,
            "subnet_id": "subnet-{subnet}",
            "tags": {{
              "Name": "node-{number}",
              "cluster": "large",
              "role": "{}"
            }},
            "tenancy": "default",
            "timeouts": null,
            "user_data": {user_data},
            "user_data_replace_on_change": false,
            "volume_tags": null,
            "vpc_security_group_ids": [
              "sg-{group}"
            ]
          }},
          "sensitive_attributes": {marks},
          "private": "eyJzY2hlbWFfdmVyc2lvbiI6IjEifQ==",
          "dependencies": [
            "aws_security_group.nodes",
            "aws_subnet.private"
          ]
        }}"#,
            &subnet[..8],
            ["a", "b", "c"][number % 3],
            if number.is_multiple_of(50) { "controlplane" } else { "worker" },
        ));
    }

    /// A machine's configuration in Base64, 2 to 4 kB long.
    fn user_data(&mut self, password: Option<&str>) -> String {
        let wanted = 1_500 + self.noise.below(1_500);
        let mut config = String::with_capacity(wanted + 100);
        config.push_str("version: v1alpha1\nmachine:\n  type: worker\n");
        if let Some(password) = password {
            let _ = writeln!(config, "  token: {password}");
        }
        let mut line = 0;
        while config.len() < wanted {
            let _ = writeln!(config, "  sysctl-{line}: \"{}\"", self.noise.next() % 100_000);
            line += 1;
        }
        STANDARD.encode(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_thousand_instances_are_about_fifty_megabytes() {
        let state = large_state(2_000, 1);
        assert!((4_600_000..5_400_000).contains(&state.len()), "{} bytes", state.len());
        assert_eq!(state, large_state(2_000, 1));
        let parsed: serde_json::Value = serde_json::from_slice(&state).unwrap();
        let blocks = parsed["resources"].as_array().unwrap();
        let instances: usize = blocks.iter().map(|block| block["instances"].as_array().unwrap().len()).sum();
        assert_eq!(instances, 2_000);
        assert!(serde_json::from_slice::<serde_json::Value>(&large_state(0, 1)).is_ok());
    }

    #[test]
    fn secrets_are_marked_as_often_as_asked() {
        let state = String::from_utf8(large_state_with_secrets(1_000, 2, 300)).unwrap();
        assert_eq!(state.matches("\"canary-").count(), 300);
        assert_eq!(state.matches("\"get_attr\"").count(), 300);
        assert!(serde_json::from_str::<serde_json::Value>(&state).is_ok());
    }
}
