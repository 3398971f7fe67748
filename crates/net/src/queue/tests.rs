use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gives_back_what_was_put_in_in_order(
        steps in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..3000), 1_usize..4000), 1..40),
    ) {
        let (mut queue, mut model) = (Queue::default(), Vec::new());
        for (piece, most) in steps {
            model.extend_from_slice(&piece);
            queue.push(piece.into());
            prop_assert_eq!(queue.held(), model.len());
            prop_assert!(model.starts_with(queue.front().unwrap()));
            let piece = queue.pop(most).unwrap();
            prop_assert!(!piece.is_empty() && piece.len() <= most);
            prop_assert!(model.starts_with(&piece));
            model.drain(..piece.len());
        }
        while let Some(front) = queue.front() {
            prop_assert!(model.starts_with(front));
            let bytes = front.len().div_ceil(2);
            queue.advance(bytes);
            model.drain(..bytes);
        }
        prop_assert!(model.is_empty() && queue.is_empty() && queue.pop(1).is_none());
    }
}

#[test]
fn a_million_small_pieces_cost_what_they_hold() {
    let mut queue = Queue::default();
    let frame = Bytes::from(vec![0; 16 * 1024]);
    for at in 0..1_000_000 {
        // Each slice would pin its read buffer.
        queue.push(frame.slice(at % 1000..=at % 1000));
    }
    assert_eq!(queue.held(), 1_000_000);
    assert!(queue.pieces.len() < 300, "{} pieces", queue.pieces.len());
    assert!(frame.is_unique(), "a frame is pinned");
}

#[test]
fn large_pieces_are_not_copied() {
    let mut queue = Queue::default();
    let frame = Bytes::from(vec![7; 16 * 1024]);
    queue.push(frame.clone());
    assert_eq!(queue.pop(usize::MAX).unwrap().as_ptr(), frame.as_ptr());
}

#[test]
fn small_pieces_need_no_list_and_pin_no_buffer() {
    let mut queue = Queue::default();
    for round in 1..=3_usize {
        (0..round).for_each(|_| queue.push(Bytes::from_static(b"small")));
        assert_eq!(queue.pieces.capacity(), 0);
        let piece = BytesMut::from(queue.pop(usize::MAX).unwrap());
        assert_eq!(piece, b"small".repeat(round)[..]);
        assert!(piece.capacity() <= 4 * piece.len(), "{} bytes", piece.capacity());
        assert!(queue.is_empty());
    }
}

#[test]
fn an_empty_queue_keeps_next_to_nothing() {
    let mut queue = Queue::default();
    for _ in 0..1000 {
        queue.push(Bytes::from(vec![0; 2000]));
        queue.push(Bytes::from_static(b"small"));
    }
    while queue.pop(usize::MAX).is_some() {}
    assert!(queue.pieces.capacity() <= 8 && queue.tail.capacity() == 0);
}
