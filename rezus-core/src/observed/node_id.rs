//! Which machine a Talos `node_id` is of, in the words of Kubernetes.

/// The machine ID, as `nodeInfo.machineID` has it, of the machine with this `node_id`: the first 16 bytes of it, in
/// hexadecimal. `None` where it is no `node_id`.
///
/// The text is base 62 of a kind of its own: symbols are taken from the little end and carry six bits each, but five where
/// their bits 1 to 4 are all ones, and the last one as many as it has.
/// <https://github.com/jxskiss/base62>, by way of Talos' `adapters/cluster/identity.go`.
///
/// ```
/// use rezus_core::observed::machine_id;
///
/// let node_id = "sou7yy34ykX3n373Zw1DXKb8zD7UnyKT6HT3QDsGH6L";
/// assert_eq!(machine_id(node_id).as_deref(), Some("be871ac0d0dd31fa4caca753b0f3f1b2"));
/// ```
pub fn machine_id(node_id: &str) -> Option<String> {
    /// More than any `node_id` of 32 bytes has.
    const MAX: usize = 64;
    const COMPACT: u32 = 0b1_1110;

    let symbols = node_id.as_bytes();
    if symbols.len() > MAX {
        return None;
    }
    // The last byte first, as they come.
    let mut bytes = Vec::with_capacity(32);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for (place, symbol) in symbols.iter().enumerate() {
        let value = u32::from(match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            _ => return None,
        });
        held |= value << bits;
        bits += match (place + 1 == symbols.len(), value & COMPACT == COMPACT) {
            (true, _) => u32::BITS - value.leading_zeros(),
            (false, true) => 5,
            (false, false) => 6,
        };
        if bits >= 8 {
            bytes.push(held & 0xff);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        bytes.push(held & 0xff);
    }
    let machine = bytes.iter().rev().take(16).fold(0, |machine, byte| machine << 8 | u128::from(*byte));
    (bytes.len() >= 16).then(|| format!("{machine:032x}"))
}
