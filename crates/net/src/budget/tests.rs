use bytes::Bytes;

use super::*;

#[derive(Default)]
struct Stream(Counters, Option<Owner>);

impl Holder for Stream {
    fn counters(&self) -> &Counters {
        &self.0
    }

    fn owner(&self) -> Owner {
        self.1.clone().unwrap_or(Owner::Itself)
    }
}

fn accounts(budget: &Budget<Stream>, held: &[usize]) -> Vec<Account<Stream>> {
    let open = |held: &usize| {
        let account = budget.open(0, Stream::default());
        account.take(*held);
        account
    };
    held.iter().map(open).collect()
}

fn owned(budget: &Budget<Stream>, owner: Owner, held: usize) -> Account<Stream> {
    let account = budget.open(0, Stream(Counters::default(), Some(owner)));
    account.take(held);
    account
}

fn is_told(account: &Account<Stream>) -> bool {
    account.holder().0.ended.load(Ordering::Relaxed)
}

#[test]
fn the_worst_give_way_and_no_more_than_need_be() {
    let budget = Budget::new(1600);
    let accounts = accounts(&budget, &[100, 700, 10, 650, 140]);
    assert_eq!((budget.free(), budget.sheds()), (0, 0));
    accounts[2].take(1);
    assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true, false, false, false]);
    // Bytes of a holder that was asked to give way no longer count, but they are still held.
    accounts[0].take(500);
    assert_eq!((budget.sheds(), budget.held(), budget.free()), (1, 2101, 0));
    accounts[4].take(300);
    assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true, false, true, false]);
    drop(accounts);
    assert_eq!((budget.held(), budget.staying(), budget.free()), (0, 0, 1600));
}

#[test]
fn what_one_owner_holds_in_all_decides_and_strangers_go_first() {
    let budget = Budget::new(1600);
    let named = |name: &str| Owner::Named(name.to_owned());
    let stranger = owned(&budget, Owner::Unauthenticated("10.0.0.1".into()), 100);
    let many: Vec<_> = (1..=9).map(|number| owned(&budget, named("many"), 90 + number)).collect();
    let one = owned(&budget, named("one"), 600);
    assert_eq!(budget.sheds(), 0);
    one.take(50);
    // Not the single stream that holds the most, because its owner holds less than the other.
    assert_eq!((is_told(&stranger), is_told(&one)), (true, false));
    assert_eq!(many.iter().map(is_told).collect::<Vec<_>>(), [vec![false; 8], vec![true]].concat());
}

/// To end them would make no room, and some of them are callers that are about to authenticate.
#[test]
fn strangers_that_hold_next_to_nothing_do_not_pay_for_others() {
    let budget = Budget::new(1600);
    let strangers: Vec<_> =
        (1..=3).map(|number| owned(&budget, Owner::Unauthenticated(number.to_string()), 30)).collect();
    let greedy = accounts(&budget, &[800, 700]);
    greedy[1].take(50);
    assert!(is_told(&greedy[0]) && !is_told(&greedy[1]) && !strangers.iter().any(is_told));
}

/// Others that hold much make the room.
#[test]
fn a_strangers_address_that_holds_next_to_nothing_is_spared_beside_others() {
    let budget = Budget::new(102_400);
    let stranger = |number: usize, held| owned(&budget, Owner::Unauthenticated(number.to_string()), held);
    let attackers: Vec<_> = (1..=4).map(|number| stranger(number, 2000)).collect();
    let newcomers: Vec<_> = (5..=9).map(|number| stranger(number, 99)).collect();
    let greedy = owned(&budget, Owner::Named("greedy".into()), 93_000);
    greedy.take(6000);
    assert!(attackers.iter().all(is_told) && is_told(&greedy), "none of those is enough");
    assert!(!newcomers.iter().any(is_told));
    // Very many that hold almost nothing hold much together.
    let crowd: Vec<_> = (10..=90).map(|number| stranger(number, 99)).collect();
    let next = owned(&budget, Owner::Named("next".into()), 90_000);
    next.take(5000);
    assert!(crowd.iter().any(is_told) && !is_told(&next));
}

#[test]
fn what_one_that_was_told_gives_back_makes_no_room_twice() {
    let budget = Budget::new(1000);
    let accounts = accounts(&budget, &[300, 800]);
    assert_eq!((is_told(&accounts[1]), budget.held(), budget.staying()), (true, 1100, 300));
    // All but the frame that HTTP/2 is writing.
    accounts[1].give(700);
    assert_eq!((budget.held(), budget.staying()), (400, 300));
    accounts[1].give(100);
    assert_eq!((budget.held(), budget.staying()), (300, 300));
    drop(accounts);
    assert_eq!((budget.held(), budget.staying()), (0, 0));
}

#[test]
fn what_a_library_has_is_held_until_it_lets_go() {
    let budget = Budget::new(1000);
    let account = budget.open(0, Stream::default());
    account.take(100);
    let mut lent = account.lend(Bytes::from(vec![7; 60]));
    let sent = lent.split_to(50);
    account.give(40);
    drop(sent);
    assert_eq!((budget.held(), account.lent()), (60 + FRAME as u64, 60));
    drop(lent);
    assert_eq!((budget.held(), account.lent()), (0, 0));
    // Bytes that it holds when the stream has ended also count.
    account.take(10);
    let lent = account.lend(Bytes::from(vec![7; 10]));
    drop(account);
    assert_eq!(budget.held(), 10 + FRAME as u64);
    drop(lent);
    assert_eq!((budget.held(), budget.0.shards[0].running.lock().len()), (0, 0));
}

#[test]
fn a_short_piece_that_is_to_be_sent_counts_with_its_frame() {
    const PIECES: usize = 100;
    let budget = Budget::new(1 << 20);
    let account = budget.open(0, Stream::default());
    account.take(PIECES);
    let pieces: Vec<_> = (0..PIECES).map(|_| account.lend(Bytes::from_static(b"x"))).collect();
    let more: Vec<_> = (0..PIECES).map(|_| account.charge_frame(Bytes::from_static(b"x"))).collect();
    let each = 1 + FRAME as u64;
    assert_eq!((budget.held(), account.lent()), (2 * PIECES as u64 * each, 2 * PIECES as u64));
    drop(pieces);
    assert_eq!((budget.held(), account.lent()), (PIECES as u64 * each, PIECES as u64));
    drop(more);
    assert_eq!((budget.held(), account.lent()), (0, 0));
    // What is not to be sent counts alone.
    let unsent = account.charge(Bytes::from_static(b"x"));
    assert_eq!((budget.held(), account.lent(), &unsent[..]), (1, 1, &b"x"[..]));
}

#[test]
fn many_small_ones_are_looked_at_seldom() {
    let budget = Budget::new(160_000);
    let accounts = accounts(&budget, &vec![100; 1600]);
    assert_eq!(budget.sheds(), 0);
    accounts[0].take(1);
    // A sixteenth of the limit at once.
    assert_eq!(budget.sheds(), 100);
    for account in accounts.iter().filter(|account| !is_told(account)).take(90) {
        account.take(100);
    }
    assert_eq!(budget.sheds(), 100);
}

#[test]
fn a_budget_of_nothing_lets_nobody_hold_anything() {
    let budget = Budget::new(0);
    let accounts = accounts(&budget, &[0, 1]);
    assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn cores_count_by_themselves_and_are_right_together() {
    const LIMIT: usize = 64 << 20;
    /// Two of them are one or two bytes more than a core counts without settling.
    const QUARTER: usize = LIMIT / 64 / 4 + 1;
    let budget = Budget::of_cores(LIMIT as u64, 2);
    let open = |core| budget.open(core, Stream::default());
    let accounts = [open(0), open(1), open(2)];
    for account in &accounts {
        account.take(QUARTER);
    }
    assert_eq!((budget.held(), budget.staying()), (3 * QUARTER as u64, 2 * QUARTER as u64), "core 0 has two of them");
    accounts[1].take(LIMIT);
    assert_eq!((budget.sheds(), is_told(&accounts[1])), (1, true));
    drop(accounts);
    assert_eq!(budget.held(), 0);
}

/// However it causes others to hold more.
#[test]
fn a_server_goes_before_those_who_hold_some_times_as_much() {
    let budget = Budget::new(1000);
    let server = owned(&budget, Owner::Server("one".into()), 200);
    let other = owned(&budget, Owner::Server("other".into()), 100);
    let user = owned(&budget, Owner::Named("one".into()), 600);
    user.take(101);
    assert_eq!([&server, &other, &user].map(is_told), [true, false, false]);
    drop(server);
    user.give(700);
    let greedy = owned(&budget, Owner::Named("greedy".into()), 700);
    other.take(70);
    greedy.take(200);
    assert_eq!([&other, &user, &greedy].map(is_told), [false, false, true], "far more than a server");
}

#[test]
fn a_tally_gives_back_what_it_has() {
    let budget = Budget::new(1000);
    let account = budget.open(0, Stream::default());
    account.take(10);
    let mut tally = account.tally();
    tally.set(70);
    tally.raise(50);
    assert_eq!(budget.held(), 80);
    tally.raise(90);
    assert_eq!(budget.held(), 100);
    drop(tally);
    assert_eq!((budget.held(), account.held()), (10, 10));
}

#[test]
fn who_has_the_most_makes_room_those_of_the_lowest_rank_first() {
    let budget = Budget::of_cores(1 << 20, 2);
    let named = |name: &str| Owner::Named(name.to_owned());
    let many: Vec<_> = (0..32).map(|held| owned(&budget, named("many"), held)).collect();
    let few: Vec<_> = (0..3).map(|held| owned(&budget, named("few"), held)).collect();
    let elsewhere: Vec<_> = (0..99).map(|_| budget.open(1, Stream(Counters::default(), Some(named("few"))))).collect();
    let rank = |stream: &Stream| Some(100 - usize::try_from(stream.0.held()).unwrap());
    assert_eq!(budget.thin_out(0, 32, rank), 0, "few enough");
    assert_eq!(budget.thin_out(0, 31, rank), 2, "a sixteenth");
    assert!(many.iter().map(is_told).eq((0..32).map(|held| held >= 30)));
    assert!(!few.iter().chain(&elsewhere).any(is_told));
    assert_eq!(budget.thin_out(0, 0, |_| None), 0, "nobody counts");
}

/// For example the hub's address, when it begins another connection.
#[test]
fn who_comes_from_a_known_address_is_no_stranger() {
    struct Known(Stream);
    impl Holder for Known {
        fn counters(&self) -> &Counters {
            &self.0.0
        }
        fn owner(&self) -> Owner {
            self.0.owner()
        }
        fn may_be_ended(&self) -> bool {
            !matches!(self.owner(), Owner::Address(_))
        }
    }
    let budget = Budget::new(1600);
    let open = |owner, held| {
        let account = budget.open(0, Known(Stream(Counters::default(), Some(owner))));
        account.take(held);
        account
    };
    let _hub = open(Owner::Address("10.0.0.1".into()), 10);
    let beginning = open(Owner::Unauthenticated("10.0.0.1".into()), 50);
    let stranger = open(Owner::Unauthenticated("10.0.0.2".into()), 120);
    let greedy = open(Owner::Named("greedy".into()), 1400);
    greedy.take(100);
    assert_eq!([&beginning, &stranger, &greedy].map(Account::is_ended), [false, true, true]);
}
