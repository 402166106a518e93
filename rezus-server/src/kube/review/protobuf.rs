//! Reviews in protobuf: an envelope (`k8s\0`, then the message `Unknown`) with the review in it. The few messages are read
//! by their field numbers; all others are passed over. Reading ends with the body, whatever is in it.

use super::{PathAction, ResourceAction, Sent};

/// What every body of Kubernetes begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body is no review in protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    /// It does not begin as all others do.
    #[error("it does not begin with k8s and a zero")]
    NoEnvelope,
    /// It ends in the middle of a field.
    #[error("it breaks off")]
    Short,
    /// A number, a field or a wire type that there is not.
    #[error("it has a field of no known form")]
    Malformed,
    /// A text is not UTF-8.
    #[error("a text in it is not UTF-8")]
    NoText,
    /// The review is compressed.
    #[error("it has a content encoding, and none is read here")]
    Encoded,
}

/// Reads a body.
pub(super) fn read(body: &[u8]) -> Result<Sent, WireError> {
    let mut sent = Sent::default();
    let mut raw: &[u8] = &[];
    for field in Fields(body.strip_prefix(MAGIC).ok_or(WireError::NoEnvelope)?) {
        match field? {
            (1, Some(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Some(version)) => sent.api_version = text(version)?,
                        (2, Some(kind)) => sent.kind = text(kind)?,
                        _ => {}
                    }
                }
            }
            (2, Some(review)) => raw = review,
            (3, Some(encoding)) if !encoding.is_empty() => return Err(WireError::Encoded),
            _ => {}
        }
    }
    for field in Fields(raw) {
        if let (2, Some(spec)) = field? {
            read_spec(spec, &mut sent)?;
        }
    }
    Ok(sent)
}

/// The spec of any of the reviews. Field 1 is a message in one of them and a text in another.
fn read_spec(spec: &[u8], sent: &mut Sent) -> Result<(), WireError> {
    let is_access = sent.kind == super::Kind::Access.kind();
    for field in Fields(spec) {
        match field? {
            (1, Some(attributes)) if is_access => {
                read_resource(attributes, sent.spec.resource_attributes.get_or_insert_default())?;
            }
            (1, Some(namespace)) => sent.spec.namespace = text(namespace)?,
            (2, Some(attributes)) if is_access => {
                read_path(attributes, sent.spec.non_resource_attributes.get_or_insert_default())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_resource(attributes: &[u8], action: &mut ResourceAction) -> Result<(), WireError> {
    for field in Fields(attributes) {
        let (number, Some(value)) = field? else { continue };
        let into = match number {
            1 => &mut action.namespace,
            2 => &mut action.verb,
            3 => &mut action.group,
            5 => &mut action.resource,
            6 => &mut action.subresource,
            7 => &mut action.name,
            _ => continue,
        };
        *into = text(value)?;
    }
    Ok(())
}

fn read_path(attributes: &[u8], action: &mut PathAction) -> Result<(), WireError> {
    for field in Fields(attributes) {
        match field? {
            (1, Some(path)) => action.path = text(path)?,
            (2, Some(verb)) => action.verb = text(verb)?,
            _ => {}
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, WireError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| WireError::NoText)
}

/// The fields of a message, one by one: number, and the bytes of those that have a length. Ends after an error.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Option<&'a [u8]>), WireError> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => {
                self.varint()?;
                None
            }
            1 => {
                self.bytes(8)?;
                None
            }
            2 => {
                let length = self.varint()?;
                Some(self.bytes(usize::try_from(length).map_err(|_| WireError::Short)?)?)
            }
            5 => {
                self.bytes(4)?;
                None
            }
            _ => return Err(WireError::Malformed),
        };
        match tag >> 3 {
            0 => Err(WireError::Malformed),
            number => Ok((number, value)),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow. At most 64 bits.
    fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.bytes(1)?[0]);
            if shift == 63 && byte > 1 {
                break;
            }
            number |= (byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(WireError::Malformed)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Option<&'a [u8]>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}
