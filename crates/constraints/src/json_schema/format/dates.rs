//! Dates, times and durations of RFC 3339.
//!
//! Readers of dates support neither leap seconds nor a year 0.

/// `full-date` of the years from 1 on: months have their lengths, and February a 29th in leap years
/// only.
pub(super) fn date() -> String {
    let fourth = "0[48]|[2468][048]|[13579][26]";
    let leap_year = format!("(?:[0-9]{{2}}(?:{fourth})|(?:{fourth})00)");
    let year = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";
    format!("(?:{year}-(?:{DAY})|{leap_year}-02-29)")
}

/// A `full-date` of any year.
pub(super) fn possible_date() -> String {
    format!("(?:{}|0000-(?:{DAY}|02-29))", date())
}

/// A month and a day that exist in every year.
const DAY: &str = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
                   |02-(?:0[1-9]|1[0-9]|2[0-8])";

/// `full-time` to the nanosecond.
pub(super) const TIME: &str =
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// A `full-time` with any fraction, in letters of any case, and with any leap second.
pub(super) const POSSIBLE_TIME: &str = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// `date-time`.
pub(super) fn date_time() -> String {
    format!("{}T{TIME}", date())
}

/// A `date-time` with a possible date and time, or with a space instead of the `T`, which section
/// 5.6 permits.
pub(super) fn possible_date_time() -> String {
    format!("{}[Tt ]{POSSIBLE_TIME}", possible_date())
}

/// `duration`, of appendix A. Numbers of at most six digits stay below the 999,999,999 days that
/// readers support.
pub(super) fn duration() -> String {
    duration_of("[0-9]{1,6}")
}

/// A `duration` with numbers of any length.
pub(super) fn possible_duration() -> String {
    duration_of("[0-9]+")
}

fn duration_of(number: &str) -> String {
    let second = format!("{number}S");
    let minute = format!("{number}M(?:{second})?");
    let hour = format!("{number}H(?:{minute})?");
    let time = format!("T(?:{hour}|{minute}|{second})");
    let day = format!("{number}D");
    let month = format!("{number}M(?:{day})?");
    let year = format!("{number}Y(?:{month})?");
    format!("P(?:(?:{day}|{month}|{year})(?:{time})?|{time}|{number}W)")
}
