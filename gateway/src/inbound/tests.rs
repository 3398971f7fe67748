use http::{HeaderMap, Response};
use kit::frames::{ACK, SETTINGS};
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::reach::{OF_CLIENTS, OF_MEMBERS};
use super::*;
use crate::headers::size::Unfit;

/// A literal with or without indexing.
fn line(first: u8, name: &str, value: &str) -> Vec<u8> {
    let mut line = vec![first];
    for text in [name, value] {
        let rest = text.len().checked_sub(127);
        line.push(u8::try_from(text.len().min(127)).unwrap());
        if let Some(rest) = rest {
            line.extend([0, 7].map(|shift| u8::try_from((rest >> shift) & 0x7f).unwrap() | 0x80));
            line.push(u8::try_from(rest >> 14).unwrap());
        }
        line.extend_from_slice(text.as_bytes());
    }
    line
}

fn frames(stream: u8, block: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let last = block.len().div_ceil(FRAME) - 1;
    for (number, part) in block.chunks(FRAME).enumerate() {
        let kind = if number == 0 { HEADERS } else { CONTINUATION };
        let flags = u8::from(number == 0) | if number == last { END_HEADERS } else { 0 };
        frames.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes()[1..]);
        frames.extend_from_slice(&[kind, flags, 0, 0, 0, stream]);
        frames.extend_from_slice(part);
    }
    frames
}

fn preface() -> Vec<u8> {
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()
}

fn request() -> Vec<u8> {
    [&[0x82, 0x87, 0x84][..], &line(0, ":authority", "hub")].concat()
}

/// The headers of all requests as h2 reads them after the filter, and why each was marked; `pieces`
/// is the size of the reads.
async fn served(blocks: &[Vec<u8>], pieces: usize) -> Vec<(HeaderMap, Option<Unfit>)> {
    let (ours, theirs) = duplex(pieces);
    let (mut answers, mut requests) = tokio::io::split(theirs);
    let streams = (1..).step_by(2).zip(blocks);
    let bytes = streams.fold(preface(), |bytes, (stream, block)| [bytes, frames(stream, block)].concat());
    tokio::spawn(async move { requests.write_all(&bytes).await });
    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut tokio::io::sink()).await });
    let marks = Marks::default();
    let mut server = h2::server::handshake(Inbound::of_client(ours, marks.clone())).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < blocks.len() {
        let (request, mut respond) = server.accept().await.expect("no end").expect("no error of the connection");
        let mut headers = request.into_parts().0.headers;
        let mark = marks.take(&mut headers);
        seen.push((headers, mark));
        respond.send_response(Response::new(()), true).unwrap();
    }
    seen
}

fn long() -> String {
    "a".repeat(70_000)
}

#[tokio::test]
async fn a_long_name_costs_its_own_request_and_no_other() {
    for pieces in [5, 1000, 1 << 20] {
        let first =
            [request(), line(0x40, "x-before", "1"), line(0, &long(), &long()), line(0x40, "x-after", "2")].concat();
        // By index in the table: the newest entry comes first.
        let second = [request(), vec![0xbe, 0xbf]].concat();
        let seen = served(&[first, second], pieces).await;
        for ((headers, mark), expected) in seen.iter().zip([Some(Unfit::LongName), None]) {
            assert_eq!((*mark, headers.len()), (expected, 2), "in pieces of {pieces}");
            assert_eq!((&headers["x-before"], &headers["x-after"]), (&"1".parse().unwrap(), &"2".parse().unwrap()));
        }
    }
}

#[tokio::test]
async fn a_long_name_that_was_to_be_remembered_empties_the_table() {
    let first = [request(), line(0x40, "x-before", "1"), line(0x40, &long(), "b"), line(0x40, "x-after", "2")].concat();
    let second = [request(), vec![0xbe]].concat();
    let seen = served(&[first, second], 1 << 20).await;
    assert_eq!((seen[0].1, seen[1].1), (Some(Unfit::LongName), None));
    assert_eq!((seen[1].0.len(), &seen[1].0["x-after"]), (1, &"2".parse().unwrap()));
}

/// h2 itself answers a list that is too long without a reason.
#[tokio::test]
async fn a_head_that_is_far_too_long_is_cut_and_costs_its_own_request_and_no_other() {
    let before = [request(), line(0x40, "x-before", "1")].concat();
    let [one, many] = [(1 << 20, 1), (300_000, 4)].map(|(bytes, times)| line(0, "x", &"v".repeat(bytes)).repeat(times));
    for long in [one, many] {
        let seen = served(&[[&before[..], &long].concat(), [request(), vec![0xbe]].concat()], 1 << 20).await;
        assert_eq!((seen[0].1, seen[1].1), (Some(Unfit::TooLarge), None));
        for (headers, _) in seen {
            assert_eq!((headers.len(), &headers["x-before"]), (1, &"1".parse().unwrap()));
        }
    }
}

#[tokio::test]
async fn a_field_without_a_name_costs_its_own_request_and_no_other() {
    for name in [&[0][..], &[0x80]] {
        let nameless = [&[0][..], name, b"\x01v"].concat();
        let large = line(0, "x", &"v".repeat(40_000));
        let first = [request(), line(0x40, "x-before", "1"), large, nameless, line(0x40, "x-after", "2")].concat();
        let second = [request(), vec![0xbe, 0xbf]].concat();
        let seen = served(&[first, second], 1 << 20).await;
        assert_eq!((seen[0].1, seen[1].1), (Some(Unfit::NoName), None));
        assert_eq!((seen[0].0.len(), seen[1].0.len()), (3, 2));
        assert_eq!((&seen[1].0["x-before"], &seen[1].0["x-after"]), (&"1".parse().unwrap(), &"2".parse().unwrap()));
    }
}

/// h2 does not remember the field, and continues.
#[tokio::test]
async fn a_field_without_a_name_that_was_to_be_remembered_ends_its_connection() {
    let large = line(0, "x", &"v".repeat(40_000));
    let block = [request(), line(0x40, "", "v"), large].concat();
    let (ours, mut theirs) = duplex(1 << 20);
    theirs.write_all(&[preface(), frames(1, &block), frames(3, &request())].concat()).await.unwrap();
    drop(theirs);
    let mut read = Vec::new();
    let end = Inbound::of_client(ours, Marks::default()).read_to_end(&mut read).await;
    assert!(end.is_err() && read == preface(), "{end:?} after {} bytes", read.len());
}

/// A path of `length` `a`s, in Huffman code.
fn coded_path(length: usize) -> Vec<u8> {
    let bits = [0, 1, 1, 0, 0, 0].into_iter().chain([0, 0, 0, 1, 1].into_iter().cycle().take(5 * (length - 1)));
    let bits: Vec<u8> = bits.collect();
    bits.chunks(8).map(|bits| (0..8).fold(0_u8, |byte, at| (byte << 1) | bits.get(at).unwrap_or(&1))).collect()
}

/// The part of a field after its name.
fn value(bytes: &[u8], coded: u8) -> Vec<u8> {
    let rest = bytes.len() - 127;
    let length = [0, 7].map(|shift| u8::try_from((rest >> shift) & 0x7f).unwrap() | 0x80);
    [&[127 | coded][..], &length, &[u8::try_from(rest >> 14).unwrap()], bytes].concat()
}

#[tokio::test]
async fn a_path_too_long_for_the_library_costs_its_own_request_and_no_other() {
    let plain = |length: usize| value(format!("/{}", "a".repeat(length - 1)).as_bytes(), 0);
    let coded = |length: usize| value(&coded_path(length), 0x80);
    let by_name = |value: Vec<u8>| [&line(0, ":path", "")[..7], &value].concat();
    let long = Some(Unfit::LongPath);
    for (path, mark) in [
        ([vec![4], plain(65_534)].concat(), None),
        ([vec![4], plain(65_535)].concat(), long),
        ([vec![0x45], plain(65_535)].concat(), long),
        (by_name(plain(65_534)), None),
        (by_name(plain(70_000)), long),
        ([vec![4], coded(65_534)].concat(), None),
        ([vec![4], coded(65_535)].concat(), long),
        ([vec![4], coded(400_000)].concat(), long),
    ] {
        let first = [&[0x82, 0x87][..], &path, &line(0, ":authority", "hub"), &line(0x40, "x-after", "2")].concat();
        let second = [request(), vec![0xbe]].concat();
        let seen = served(&[first, second], 1 << 20).await;
        assert_eq!((seen[0].1, seen[1].1), (mark, None), "{:?}", &path[..8]);
        assert_eq!(seen[1].0["x-after"], "2", "{:?}", &path[..8]);
    }
}

#[tokio::test]
async fn other_heads_of_many_frames_pass() {
    let value = "v".repeat(100_000);
    let block = [request(), line(0, &"n".repeat(20_000), &value), line(0x40, "x-large", &value)].concat();
    for pieces in [997, 1 << 20] {
        let seen = served(&[block.clone(), request(), block.clone()], pieces).await;
        assert_eq!(
            seen.iter().map(|(headers, mark)| (headers.len(), *mark)).collect::<Vec<_>>(),
            [(2, None), (0, None), (2, None)]
        );
    }
}

#[tokio::test]
async fn a_members_head_that_is_too_long_ends_its_connection() {
    const FRAME: usize = 60 << 10;
    for (bytes, ends) in [(OF_MEMBERS.held - 2 * FRAME, false), (OF_MEMBERS.held + 2 * FRAME, true)] {
        let (ours, mut theirs) = duplex(1 << 20);
        let sending = tokio::spawn(async move {
            let mut frame = vec![0; FRAME_HEAD + FRAME];
            for number in 0..bytes / frame.len() {
                frame[..FRAME_HEAD].copy_from_slice(&[0, 0xf0, 0, HEADERS, 0, 0, 0, 0, 1]);
                frame[3] = if number == 0 { HEADERS } else { CONTINUATION };
                if theirs.write_all(&frame).await.is_err() {
                    return;
                }
            }
        });
        let read = Inbound::of_member(ours, Marks::default()).read_to_end(&mut Vec::new()).await;
        assert_eq!(read.is_err(), ends, "{bytes} bytes");
        sending.await.unwrap();
    }
}

/// h2 keeps a stream for each reset that is not sent.
#[tokio::test]
async fn resets_that_a_client_does_not_read_count_for_it() {
    const ROOM: usize = 1 << 10;
    const FRAMES: usize = 100;
    let account = crate::holding::open(&crate::holding::Budget::new(1 << 30), 0, [10, 0, 0, 1].into());
    let before = account.held();
    let (ours, theirs) = duplex(64 << 10);
    let (mut answers, mut requests) = tokio::io::split(theirs);
    let (small, mut unread) = duplex(ROOM);
    let io = tokio::io::join(ours, small);
    let mut inbound = Inbound::of_client(io, Marks::default()).held_for(&account).owed(FRAMES / 2);
    inbound.write_all(&[0; ROOM]).await.unwrap();
    assert!(futures_util::poll!(std::pin::pin!(inbound.write_all(&[0]))).is_pending(), "it does not read");
    let broken = [0, 0, 1, HEADERS, END_HEADERS, 0, 0, 0, 1, 0x82];
    requests.write_all(&[&[b' '; PREFACE][..], &broken.repeat(FRAMES)].concat()).await.unwrap();
    let mut read = vec![0; PREFACE + FRAMES * broken.len()];
    inbound.read_exact(&mut read).await.unwrap();
    let held = account.held();
    let mut taken = [0; ROOM];
    unread.read_exact(&mut taken).await.unwrap();
    inbound.write_all(&[0; ROOM / 2]).await.unwrap();
    inbound.flush().await.unwrap();
    let owed = held - account.held();
    assert!((FRAMES as u64 / 2 * 600..FRAMES as u64 / 2 * 800).contains(&owed), "{owed}, and no more than are kept");
    // What remains is memory of frames' slots.
    assert!(account.held() - before < FRAMES as u64 * 250);
    drop((answers.read(&mut []).await, requests));
}

const PING: u8 = 6;

/// The gateway's connection to a member that does not read, and what it holds for that.
async fn owed_to_member(frames: &[u8]) -> (io::Result<usize>, u64) {
    const ROOM: usize = 1 << 10;
    let account = crate::holding::open(&crate::holding::Budget::new(1 << 30), 0, [10, 0, 0, 1].into());
    let before = account.held();
    let (ours, mut theirs) = duplex(frames.len() + ROOM);
    let (small, mut unread) = duplex(ROOM);
    let mut inbound = Inbound::of_member(tokio::io::join(ours, small), Marks::default()).held_for(&account);
    inbound.write_all(&[0; ROOM]).await.unwrap();
    assert!(futures_util::poll!(std::pin::pin!(inbound.write_all(&[0]))).is_pending(), "it does not read");
    theirs.write_all(frames).await.unwrap();
    drop(theirs);
    let read = inbound.read_to_end(&mut Vec::new()).await;
    // One flush, of at most what fits.
    unread.read_exact(&mut [0; ROOM]).await.unwrap();
    inbound.write_all(&[0; ROOM / 2]).await.unwrap();
    inbound.flush().await.unwrap();
    (read, account.held() - before)
}

fn frame(kind: u8, stream: u32) -> Vec<u8> {
    [&[0, 0, 0, kind, 0][..], &stream.to_be_bytes()].concat()
}

#[tokio::test]
async fn data_of_a_member_for_forgotten_streams_counts_once_a_stream() {
    let many: Vec<u8> = (1..=33_000).flat_map(|number| frame(DATA, 2 * number)).collect();
    assert!(owed_to_member(&many).await.0.is_err(), "33,000 streams");
    let one = frame(DATA, 1).repeat(100_000);
    let (read, held) = owed_to_member(&one).await;
    // What remains is memory of frames' slots, as many as one read takes here.
    assert!(read.is_ok() && held < 100_000 * 250, "one stream: {read:?}, {held}");
}

#[tokio::test]
async fn what_a_member_is_owed_counts_beyond_a_flush_of_a_part_of_it() {
    let (read, held) = owed_to_member(&frame(PRIORITY, 99).repeat(10_000)).await;
    assert!(read.is_ok() && held > 6_000_000, "{read:?}, {held}");
}

#[tokio::test]
async fn a_member_that_pushes_ends_its_connection_before_the_head_is_taken_in() {
    let (ours, mut theirs) = duplex(1 << 20);
    let push = [frame(PING, 0), frame(PUSH_PROMISE, 1), frame(CONTINUATION, 1).repeat(100)].concat();
    theirs.write_all(&push).await.unwrap();
    drop(theirs);
    let mut read = Vec::new();
    let end = Inbound::of_member(ours, Marks::default()).read_to_end(&mut read).await;
    assert!(end.is_err() && read == frame(PING, 0), "{end:?} after {} bytes", read.len());
}

/// h2 remembers them as slices of their block.
#[tokio::test]
async fn a_member_whose_remembered_pseudo_headers_keep_its_blocks_ends_its_connection() {
    let (large, pseudo) = (line(0, "x", &"v".repeat(70_000)), line(0x40, ":status", "200"));
    let behind = frames(1, &[&large[..], &pseudo].concat());
    let before = frames(1, &[&pseudo[..], &large].concat());
    // A value for the newest name of the table, which is this head's, or one of an earlier head.
    let named = frames(1, &[&line(0x40, "x-a", "1")[..], &large, &[0x7e, 1, b'2']].concat());
    let unknown = frames(1, &[&large[..], &[0x7e, 1, b'2']].concat());
    let fit = PINNED_BY_MEMBER / (large.len() + pseudo.len());
    let (no, yes) =
        ([(&behind, fit), (&before, 3 * fit), (&named, 3 * fit)], [(&behind, fit + 1), (&unknown, fit + 1)]);
    let rows = no.map(|(block, times)| (block, times, false)).into_iter();
    for (block, times, ends) in rows.chain(yes.map(|(block, times)| (block, times, true))) {
        let (ours, mut theirs) = duplex(32 << 20);
        theirs.write_all(&block.repeat(times)).await.unwrap();
        drop(theirs);
        let read = Inbound::of_member(ours, Marks::default()).read_to_end(&mut Vec::new()).await;
        assert_eq!(read.is_err(), ends, "{times} of {fit} that fit: {read:?}");
    }
}

/// h2 makes a hundred bytes of each field before it is known that the head is too large.
#[tokio::test]
async fn a_head_of_a_million_fields_of_a_byte_is_passed_on_short_and_with_a_mark() {
    let entry = line(0x40, "a", "");
    let block = [&entry[..], &vec![0xbe; 1_000_000], &line(0x40, "b", "")[..]].concat();
    let (ours, mut theirs) = duplex(4 << 20);
    theirs.write_all(&frames(1, &block)).await.unwrap();
    drop(theirs);
    let mut read = Vec::new();
    Inbound::of_member(ours, Marks::default()).read_to_end(&mut read).await.unwrap();
    assert!(read.len() < 20_000 && read.windows(4).any(|bytes| bytes == line(0x40, "b", "")), "{} bytes", read.len());
    let mark = frames::mark(Unfit::TooLarge);
    assert!(read.windows(mark.len()).any(|bytes| bytes == mark), "no mark");
}

/// They change h2's table, so they must be passed on.
#[tokio::test]
async fn fields_beyond_all_limits_that_are_remembered_count_for_a_turn() {
    let fields = 100_000;
    let account = crate::holding::open(&crate::holding::Budget::new(1 << 30), 0, [10, 0, 0, 1].into());
    let before = account.held();
    let (ours, mut theirs) = duplex(4 << 20);
    let block = frames(1, &line(0x40, "a", "").repeat(fields));
    theirs.write_all(&block).await.unwrap();
    let mut inbound = Inbound::of_member(ours, Marks::default()).held_for(&account);
    let mut read = vec![0; 1 << 20];
    let mut poll = async || futures_util::poll!(std::pin::pin!(inbound.read(&mut read))).map(Result::unwrap);
    while poll().await.is_ready() {}
    let surplus = account.held() - before;
    assert!(surplus > 100 * (fields as u64 - 20_000), "{surplus}");
    theirs.write_all(&frame(PING, 0)).await.unwrap();
    assert!(poll().await.is_ready());
    assert_eq!(account.held(), before);
}

/// Their streams wait in h2 meanwhile.
#[tokio::test]
async fn a_turn_ends_after_some_thousand_frames_and_another_follows_at_once() {
    const FRAMES: usize = 100_000;
    let (ours, mut theirs) = duplex(4 << 20);
    theirs.write_all(&frame(DATA, 1).repeat(FRAMES)).await.unwrap();
    let mut inbound = Inbound::of_member(ours, Marks::default());
    drop(theirs);
    let (mut read, mut of_turn, mut most, mut piece) = (0, 0, 0, [0; 16 << 10]);
    let turns = std::future::poll_fn(|cx| {
        loop {
            let mut buf = ReadBuf::new(&mut piece);
            if Pin::new(&mut inbound).poll_read(cx, &mut buf)?.is_pending() {
                of_turn = 0;
                return Poll::Pending;
            }
            if buf.filled().is_empty() {
                return Poll::Ready(io::Result::Ok(()));
            }
            read += buf.filled().len();
            of_turn += buf.filled().len() / FRAME_HEAD;
            most = most.max(of_turn);
        }
    });
    kit::wait::within(kit::wait::WAIT, "all turns", turns).await.unwrap();
    assert!(most < 8000, "{most} in a turn");
    assert_eq!(read, FRAMES * FRAME_HEAD);
}

/// Before h2 reports an error, it takes in tens of megabytes of a member's head.
#[tokio::test]
async fn what_is_no_head_ends_its_connection_before_it_is_taken_in() {
    let begun = [&[0, 0x40, 0, HEADERS, 0, 0, 0, 0, 1][..], &[0x8f; FRAME]].concat();
    let one = [0, 0, 1, CONTINUATION, 0, 0, 0, 0, 1, 0x8f];
    let cut = [0, 0, 2, CONTINUATION, END_HEADERS, 0, 0, 0, 1, 0x40, 0x7f];
    let large = [&[2, 0, 0, CONTINUATION, 0, 0, 0, 0, 1][..], &vec![0x8f; 2 << 16]].concat();
    for (what, rest) in [
        ("many small frames", one.repeat(2 * OF_MEMBERS.frames)),
        ("a field that is cut off", cut.to_vec()),
        ("another frame within it", frame(PING, 0)),
        ("a frame larger than we take", large),
    ] {
        let (ours, mut theirs) = duplex(1 << 20);
        theirs.write_all(&[&frame(PING, 0)[..], &begun, &rest].concat()).await.unwrap();
        let mut read = Vec::new();
        let mut inbound = Inbound::of_member(ours, Marks::default());
        let end = kit::wait::within(kit::wait::WAIT, what, inbound.read_to_end(&mut read)).await;
        assert!(end.is_err() && read == frame(PING, 0), "{what}: {end:?} after {} bytes", read.len());
    }
}

#[tokio::test]
async fn a_flood_of_settings_ends_its_connection() {
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    let acknowledged = [0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0];
    for (frame, passes) in [(settings, false), (acknowledged, true)] {
        let (ours, mut theirs) = duplex(1 << 20);
        theirs.write_all(&[preface(), frame.repeat(2000)].concat()).await.unwrap();
        drop(theirs);
        let mut read = Vec::new();
        assert_eq!(Inbound::of_client(ours, Marks::default()).read_to_end(&mut read).await.is_ok(), passes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any frames: nothing is lost, added or reordered except such fields, and nothing panics.
    #[test]
    fn what_is_not_taken_out_arrives(
        parts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(frames(1, &request())),
            Just(frames(3, &[request(), line(0, "x", &"v".repeat(40_000))].concat())),
        ], 0..5),
        pieces in 1..5000_usize,
    ) {
        let bytes = [preface(), parts.concat()].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (end, read) = runtime.block_on(async {
            let (ours, mut theirs) = duplex(pieces);
            let sent = bytes.clone();
            tokio::spawn(async move { theirs.write_all(&sent).await });
            let mut read = Vec::new();
            (Inbound::of_client(ours, Marks::default()).read_to_end(&mut read).await, read)
        });
        let (bytes, read) = (joined(&bytes), joined(&read));
        // A head that never becomes complete is lost with its connection, and an invalid one ends
        // it.
        prop_assert!(bytes.starts_with(&read));
        prop_assert!(end.is_err() || bytes.len() - read.len() <= OF_CLIENTS.held);
    }

    #[test]
    fn frames_end_inside_fields_and_hold_all_of_them(
        fields in prop::collection::vec(prop_oneof![Just(1_usize), 1..30_usize, 1..300_usize], 1..200),
        most in 64..200_usize,
    ) {
        // All bytes of a field but the first are 0, so that the beginning of a field is visible.
        let fields: Vec<Vec<u8>> =
            fields.into_iter().map(|length| (0..length).map(|at| u8::from(at == 0) * 0x82).collect()).collect();
        let mut made = frames::Frames::new(1, [0, 0, 0, 7], most, 100);
        for field in &fields {
            made.put(field);
        }
        let (bytes, marked) = made.end(false);
        let (mut at, mut payloads) = (0, Vec::new());
        while at < bytes.len() {
            let frame = Frame::read(&bytes[at..]).unwrap();
            let (first, last) = (at == 0, at + frame.size() == bytes.len());
            let expected = if first { HEADERS } else { CONTINUATION };
            let flags = u8::from(first) | if last { END_HEADERS } else { 0 };
            prop_assert_eq!((frame.kind, frame.flags, &bytes[at + 5..at + 9]), (expected, flags, &[0, 0, 0, 7][..]));
            let payload = &bytes[at + FRAME_HEAD..at + frame.size()];
            prop_assert!((1..=most).contains(&payload.len()));
            prop_assert!(first || payload[0] != 0x82, "a field begins with a frame");
            payloads.extend_from_slice(payload);
            at += frame.size();
        }
        let one_by_one = fields.iter().all(|field| field.len() == 1) && fields.len() > most;
        prop_assert!(!one_by_one || marked);
        if !marked {
            prop_assert_eq!(payloads, fields.concat());
        }
    }
}

/// Joins each head of several frames into a single frame.
fn joined(bytes: &[u8]) -> Vec<u8> {
    let (mut joined, mut at) = (bytes[..bytes.len().min(PREFACE)].to_vec(), PREFACE);
    while let Some(frame) = bytes.get(at..).and_then(Frame::read) {
        let payload = &bytes[at + FRAME_HEAD..bytes.len().min(at + frame.size())];
        let follows = frame.kind == CONTINUATION && bytes[at + 8] == 3;
        if !follows {
            // The total length depends on what follows.
            let length = if bytes[at + 8] == 3 { [0; 3] } else { [bytes[at], bytes[at + 1], bytes[at + 2]] };
            joined.extend_from_slice(&length);
            joined.extend_from_slice(&bytes[at + 3..at + FRAME_HEAD]);
        }
        joined.extend_from_slice(payload);
        at += frame.size();
    }
    joined.extend_from_slice(bytes.get(at..).unwrap_or_default());
    joined
}
