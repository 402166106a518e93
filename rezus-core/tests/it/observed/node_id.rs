//! Which machine a `node_id` is of.

use std::fmt::Write as _;

use proptest::prelude::*;
use rezus_core::observed::machine_id;

/// As Talos writes it: the bits from the little end, six at a time, or five where the upper four of those are ones.
fn node_id(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut bits = bytes
        .iter()
        .rev()
        .flat_map(|byte| (0..8).map(move |bit| usize::from(byte >> bit & 1)))
        .collect::<std::collections::VecDeque<_>>();
    let mut text = String::new();
    while !bits.is_empty() {
        let take = bits.len().min(6);
        let mut value = (0..take).map(|bit| bits[bit] << bit).sum::<usize>();
        let mut used = take;
        if value & 0x1e == 0x1e {
            if bits.len() > 6 || value > 0x1f {
                used -= 1;
            }
            value &= 0x1f;
        }
        bits.drain(..used);
        text.push(char::from(SYMBOLS[value]));
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn the_vector_of_talos_gives_its_machine_id() {
    let node_id = "sou7yy34ykX3n373Zw1DXKb8zD7UnyKT6HT3QDsGH6L";
    assert_eq!(machine_id(node_id).as_deref(), Some("be871ac0d0dd31fa4caca753b0f3f1b2"));
}

#[test]
fn what_is_no_node_id_is_of_no_machine() {
    for text in ["", "A", "be871ac0d0dd31fa", "sou7yy34ykX3n373Zw1DXKb8zD7UnyKT6HT3QDsGH6-", &"x".repeat(65)]
    {
        assert_eq!(machine_id(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn the_first_half_of_what_was_written_is_read_back(
        first in 1_u8.., rest in prop::array::uniform31(prop_oneof![any::<u8>(), Just(0xff), Just(0)])
    ) {
        let bytes = [&[first][..], &rest].concat();
        prop_assert_eq!(machine_id(&node_id(&bytes)), Some(hex(&bytes[..16])), "{}", node_id(&bytes));
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,80}") {
        drop(machine_id(&text));
    }
}
