//! What went wrong at a hub, for people: kube's own text repeats a Status as the program has it.

use kube::Error;
use net::words::causes;

/// The hub's answer, or why there was none.
pub fn told(error: &Error) -> String {
    match error {
        Error::Api(status) => format!("the hub answered {}: {}", status.code, status.message),
        other => causes(other),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_answer_is_its_code_and_its_message() {
        let status = Status { code: 403, message: "secrets is forbidden".to_owned(), ..Status::default() };
        assert_eq!(told(&Error::Api(Box::new(status))), "the hub answered 403: secrets is forbidden");
    }

    #[test]
    fn no_answer_is_its_cause() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let told = told(&Error::Service(Box::new(refused)));
        assert!(told.ends_with("connection refused"), "{told}");
    }
}
