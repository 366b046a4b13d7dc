use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use super::*;
use crate::digest::sha256;

/// A web server on this machine that gives one prepared answer a connection and notes the requests.
struct Server {
    address: &'static str,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file.gz", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                noted.lock().unwrap().push(serve(stream, &answer));
            }
        });
        Self { address: address.leak(), requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request up to its empty line, answers, and closes.
fn serve(mut stream: TcpStream, answer: &[u8]) -> String {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    stream.write_all(answer).unwrap();
    request.join("\n").to_lowercase()
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n").as_bytes(), body].concat()
}

fn whole(body: &[u8]) -> Vec<u8> {
    answer("200 OK", &format!("Content-Length: {}\r\n", body.len()), body)
}

/// An answer that announces everything and breaks off.
fn cut(body: &[u8], length: usize) -> Vec<u8> {
    answer("200 OK", &format!("Content-Length: {}\r\n", body.len()), &body[..length])
}

fn rest(body: &[u8], start: usize) -> Vec<u8> {
    let range = format!("Content-Range: bytes {start}-{}/{}\r\n", body.len() - 1, body.len());
    answer("206 Partial Content", &format!("{range}Content-Length: {}\r\n", body.len() - start), &body[start..])
}

fn content() -> Vec<u8> {
    [&[0x1f, 0x8b][..], &(0..5000u32).map(|i| ((i * i) >> 4) as u8).collect::<Vec<_>>()].concat()
}

/// A data set of one file with the content above.
fn remote(addresses: Vec<&'static str>) -> Remote {
    let (content, addresses) = (content(), addresses.leak());
    let file = RemoteFile { name: "file.gz", bytes: content.len() as u64, sha256: sha256(&content).leak(), addresses };
    Remote { name: "tiny", folder: "tiny", files: vec![file].leak(), terms: "" }
}

/// An address of this machine at which nobody listens.
fn dead() -> &'static str {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/file.gz", listener.local_addr().unwrap()).leak()
}

fn fetch_here(remote: &Remote, directory: &Path) -> Result<Vec<Fetched>, DataError> {
    fetch_with(&transfer::configured(Agent::config_builder().proxy(None)), remote, directory, &mut |_| ())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(directory.join("tiny")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fetches into an empty directory and checks that the file is there, right and alone.
fn fetch_all(remote: &Remote) -> Vec<Fetched> {
    let directory = tempfile::tempdir().unwrap();
    let fetched = fetch_here(remote, directory.path()).unwrap();
    assert_eq!(fs_err::read(directory.path().join("tiny/file.gz")).unwrap(), content());
    assert_eq!(names(directory.path()), ["file.gz"]);
    fetched
}

/// Fetches in vain and returns the message and what is left in the folder.
fn fetch_in_vain(remote: &Remote) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let message = fetch_here(remote, directory.path()).unwrap_err().to_string();
    (message, names(directory.path()))
}

#[test]
fn a_dead_address_is_followed_by_the_next() {
    let server = Server::start(vec![whole(&content())]);
    let fetched = fetch_all(&remote(vec![dead(), server.address]));
    assert_eq!(fetched[0].origin, Origin::Address(server.address.to_owned()));
    let request = &server.requests()[0];
    assert!(request.contains("accept-encoding: identity") && !request.contains("range:"), "{request}");
}

#[test]
fn files_that_are_there_and_right_need_no_connection() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![whole(&content())]);
    fs_err::create_dir(directory.path().join("tiny")).unwrap();
    fs_err::write(directory.path().join("tiny/file.gz"), content()).unwrap();
    let fetched = fetch_here(&remote(vec![server.address]), directory.path()).unwrap();
    assert_eq!(fetched[0].origin, Origin::Present);
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn an_error_page_is_described_and_never_kept() {
    let page = b"<!DOCTYPE html><title>Sorry</title>";
    let server = Server::start(vec![whole(page)]);
    let missing = Server::start(vec![answer("404 Not Found", "Content-Length: 4\r\n", b"gone")]);
    let refused = dead();
    let (message, left) = fetch_in_vain(&remote(vec![server.address, missing.address, refused]));
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].ends_with("tiny/file.gz` could not be downloaded:"), "{message}");
    assert!(lines[1].contains(&format!("{}: delivered an HTML page of 35 bytes, expected 5,002", server.address)));
    assert!(lines[2].ends_with(&format!("{}: answered 404 Not Found", missing.address)), "{message}");
    assert!(lines[3].contains(refused) && lines[3].contains("refused"), "{message}");
    assert_eq!(left, [""; 0]);
}

#[test]
fn wrong_content_of_any_length_is_refused() {
    let mut other = content();
    other[100] ^= 1;
    let longer = [content(), vec![0; 70_000]].concat();
    let endless = answer("200 OK", "", &longer);
    for (answer, text) in [
        (whole(&other), "as many bytes as the published file, but with SHA-256"),
        (whole(&longer), "delivered a gzip file of 75,002 bytes, expected 5,002 bytes"),
        (endless, " bytes or more, expected 5,002 bytes"),
        (whole(&content()[..4000]), "delivered a gzip file of 4,000 bytes"),
    ] {
        let server = Server::start(vec![answer]);
        let (message, left) = fetch_in_vain(&remote(vec![server.address]));
        assert!(message.contains(text), "{message}");
        assert_eq!(left, [""; 0]);
    }
}

#[test]
fn a_connection_that_breaks_off_is_resumed() {
    let body = content();
    let server = Server::start(vec![cut(&body, 2000), rest(&body, 2000)]);
    fetch_all(&remote(vec![server.address]));
    assert!(server.requests()[1].contains("range: bytes=2000-"), "{:?}", server.requests());

    // Another address goes on where the first ended, also when the end of its answer does not tell whether it is
    // complete.
    let [first, second] =
        [vec![answer("200 OK", "", &body[..3000]), answer("500 Oops", "", b"")], vec![rest(&body, 3000)]]
            .map(Server::start);
    let fetched = fetch_all(&remote(vec![first.address, second.address]));
    assert_eq!(fetched[0].origin, Origin::Address(second.address.to_owned()));
}

#[test]
fn a_later_call_goes_on_and_a_server_without_ranges_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    let body = content();
    let server = Server::start(vec![cut(&body, 2000), answer("503 Busy", "", b""), whole(&body)]);
    let remote = remote(vec![server.address]);
    let message = fetch_here(&remote, directory.path()).unwrap_err().to_string();
    assert!(message.contains("answered 503"), "{message}");
    let left = names(directory.path());
    assert!(left.len() == 1 && left[0].starts_with("file.gz.part-"), "{left:?}");

    fetch_here(&remote, directory.path()).unwrap();
    assert!(server.requests()[2].contains("range: bytes=2000-"));
    assert_eq!(names(directory.path()), ["file.gz"]);
    assert_eq!(fs_err::read(directory.path().join("tiny/file.gz")).unwrap(), body);
}

#[test]
fn a_bad_beginning_does_not_poison_later_calls() {
    let body = content();
    for beginning in [b"<html>Service".to_vec(), vec![7; 9000], vec![7; body.len()]] {
        let directory = tempfile::tempdir().unwrap();
        let answers = match beginning.len() < body.len() {
            true => vec![rest(&body, beginning.len()), whole(&body)],
            false => vec![whole(&body)],
        };
        let remote = remote(vec![Server::start(answers).address]);
        fs_err::create_dir(directory.path().join("tiny")).unwrap();
        let part = format!("tiny/file.gz.part-{}", &remote.files[0].sha256[..12]);
        fs_err::write(directory.path().join(part), beginning).unwrap();
        fetch_here(&remote, directory.path()).unwrap();
        assert_eq!(fs_err::read(directory.path().join("tiny/file.gz")).unwrap(), body);
    }
}

#[test]
fn a_range_that_cannot_be_satisfied_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    let body = content();
    let server = Server::start(vec![answer("416 Range Not Satisfiable", "", b""), whole(&body)]);
    let remote = remote(vec![server.address]);
    fs_err::create_dir(directory.path().join("tiny")).unwrap();
    let part = format!("tiny/file.gz.part-{}", &remote.files[0].sha256[..12]);
    fs_err::write(directory.path().join(part), &body[..100]).unwrap();
    fetch_here(&remote, directory.path()).unwrap();
    assert_eq!(names(directory.path()), ["file.gz"]);
}

#[test]
fn a_wrong_file_of_the_name_is_moved_aside_once_the_right_one_is_there() {
    let directory = tempfile::tempdir().unwrap();
    fs_err::create_dir(directory.path().join("tiny")).unwrap();
    fs_err::write(directory.path().join("tiny/file.gz"), "mine").unwrap();
    assert!(fetch_here(&remote(vec![dead()]), directory.path()).is_err());
    assert_eq!(names(directory.path()), ["file.gz"]);

    let server = Server::start(vec![whole(&content())]);
    let fetched = fetch_here(&remote(vec![server.address]), directory.path()).unwrap();
    let set_aside = fetched[0].set_aside.clone().unwrap();
    assert_eq!(fs_err::read(set_aside).unwrap(), b"mine");
    assert_eq!(names(directory.path()), ["file.gz", "file.gz.set-aside-1"]);
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let remote = remote(vec![dead()]);
    fs_err::create_dir(directory.path().join("tiny")).unwrap();
    let held = Part::open(&directory.path().join("tiny/file.gz"), &remote.files[0]).unwrap();
    assert!(matches!(fetch_here(&remote, directory.path()), Err(DataError::Busy { .. })));
    held.remove().unwrap();
    assert!(matches!(fetch_here(&remote, directory.path()), Err(DataError::Download { .. })));
}

#[test]
fn progress_ends_with_the_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![whole(&content())]);
    let agent = transfer::configured(Agent::config_builder().proxy(None));
    let mut last = (0, 0);
    fetch_with(&agent, &remote(vec![server.address]), directory.path(), &mut |step| last = (step.done, step.total))
        .unwrap();
    assert_eq!(last, (5002, 5002));
}

#[test]
fn a_file_without_addresses_says_so() {
    let (message, left) = fetch_in_vain(&remote(vec![]));
    assert!(message.ends_with("could not be downloaded: it has no address"), "{message}");
    assert_eq!(left, [""; 0]);
}
