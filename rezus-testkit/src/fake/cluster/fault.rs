//! What can be wrong with all of a peer.

/// How a peer behaves that does not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// Nobody listens.
    NotAccepting,
    /// It accepts, and says nothing: no handshake.
    SilentTls,
    /// Its certificate is of another authority of the same name: the cluster was made anew.
    SameNamedAuthority,
    /// Its certificate is of another authority of another name.
    UnknownAuthority,
    /// Its certificate has ended.
    Expired,
    /// Its certificate has not begun.
    NotYetValid,
    /// Its certificate is for another name.
    WrongName,
    /// A handshake, and then no answer.
    SilentHttp,
    /// Each answer comes a byte a second.
    Drip,
    /// Each answer begins, and then nothing more comes.
    HalfOpen,
    /// Each answer goes on for 5 GB.
    Endless,
    /// Each answer is a page for people.
    Html,
    /// Each answer ends in the middle, and the connection with it.
    Cut,
    /// It does not know the client (401).
    Unauthorized,
    /// It asks to come again in 7 s (429).
    TooManyRequests,
    /// It is not there for anybody (503).
    Unavailable,
}

impl PeerFault {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::NotAccepting,
        Self::SilentTls,
        Self::SameNamedAuthority,
        Self::UnknownAuthority,
        Self::Expired,
        Self::NotYetValid,
        Self::WrongName,
        Self::SilentHttp,
        Self::Drip,
        Self::HalfOpen,
        Self::Endless,
        Self::Html,
        Self::Cut,
        Self::Unauthorized,
        Self::TooManyRequests,
        Self::Unavailable,
    ];
}
