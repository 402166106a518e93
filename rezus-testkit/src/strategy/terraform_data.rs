//! States of the type `terraform_data`, which is built into OpenTofu and Terraform: they read such a state, and plan with
//! it, without any provider.

use std::fmt::Write as _;

use super::noise::Noise;

/// Returns a state of `instances` objects of `terraform_data.node`, by `count`, as Terraform writes it.
///
/// The configuration it fits is `resource "terraform_data" "node"` with that `count` and
/// `input = "value-${count.index}"`.
pub fn terraform_data_state(instances: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let (high, low) = (noise.next(), noise.next());
    let lineage = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    );
    let mut text = format!(
        "{{\n  \"version\": 4,\n  \"terraform_version\": \"1.11.4\",\n  \"serial\": {},\n  \"lineage\": \"{lineage}\",\n  \
         \"outputs\": {{}},\n  \"resources\": [",
        1 + seed % 1_000
    );
    if instances > 0 {
        text += r#"
    {
      "mode": "managed",
      "type": "terraform_data",
      "name": "node",
      "provider": "provider[\"terraform.io/builtin/terraform\"]",
      "instances": ["#;
        for number in 0..instances {
            let (high, low) = (noise.next(), noise.next() & 0xffff_ffff_ffff);
            let id = format!(
                "{:08x}-{:04x}-4{:03x}-8{:03x}-{low:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xfff,
                high & 0xfff
            );
            text += if number == 0 { "\n" } else { ",\n" };
            let _ = write!(
                text,
                r#"        {{
          "index_key": {number},
          "schema_version": 0,
          "attributes": {{
            "id": "{id}",
            "input": {{
              "value": "value-{number}",
              "type": "string"
            }},
            "output": {{
              "value": "value-{number}",
              "type": "string"
            }},
            "triggers_replace": null
          }},
          "sensitive_attributes": []
        }}"#
            );
        }
        text += "\n      ]\n    }\n  ";
    }
    text += "],\n  \"check_results\": null\n}\n";
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_state_of_any_size() {
        for instances in [0, 1, 100] {
            let parsed: serde_json::Value =
                serde_json::from_slice(&terraform_data_state(instances, 3)).unwrap();
            let found = parsed["resources"][0]["instances"].as_array().map_or(0, Vec::len);
            assert_eq!(found, instances);
        }
    }
}
