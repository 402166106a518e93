//! A receiver that answers as it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Default)]
struct State {
    /// What the next requests are answered; afterwards they are taken. An empty one hangs up.
    answers: VecDeque<String>,
    /// What, somewhere in a body, has it refused.
    poison: Option<String>,
    heads: Vec<String>,
    /// Nodes of the samples that were taken.
    taken: Vec<String>,
}

pub(super) struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/api/v1/write?x=1", self.address)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn answers(&self, answers: &[&str]) {
        self.state.lock().unwrap().answers.extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    pub(super) fn refuses(&self, poison: &str) {
        self.state.lock().unwrap().poison = Some(poison.to_owned());
    }

    /// How many requests came.
    pub(super) fn count(&self) -> usize {
        self.state.lock().unwrap().heads.len()
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.state.lock().unwrap().heads.clone()
    }

    pub(super) fn taken(&self) -> Vec<String> {
        self.state.lock().unwrap().taken.clone()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.expect("a length");
    while read.len() < end + length {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let body = snap::raw::Decoder::new().decompress_vec(&read[end..]).expect("a block of snappy");
    let body = String::from_utf8_lossy(&body).into_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        state.heads.push(head);
        let is_poisoned = state.poison.as_ref().is_some_and(|poison| body.contains(poison));
        match state.answers.pop_front() {
            Some(answer) => answer,
            None if is_poisoned => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned(),
            None => {
                // A label is two strings, each with its length before it.
                let nodes = body.split("node\u{12}").skip(1);
                let names =
                    nodes.map(|rest| rest.chars().skip(1).take_while(char::is_ascii_alphanumeric).collect());
                let names: Vec<String> = names.collect();
                state.taken.extend(names);
                "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
            }
        }
    };
    drop(stream.write_all(answer.as_bytes()).await);
}
