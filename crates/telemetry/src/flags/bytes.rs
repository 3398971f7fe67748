//! Amounts of memory as Kubernetes writes them: `512Mi`, `1Gi`, or plain bytes.

/// Parses a whole number with `Ki`, `Mi`, `Gi` or nothing behind it. Zero is no amount.
pub fn parse(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not an amount of memory: write for example 512Mi or 1Gi");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_writes() {
        for (text, bytes) in [("1", 1), ("64Ki", 65_536), ("512Mi", 536_870_912), ("2Gi", 2_147_483_648)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "Mi", "-1", "1M", "1.5Gi", "99999999999999999999", "17179869184Gi"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
