//! Dates, times and durations of RFC 3339.

/// `full-date`: months have their lengths, and February a 29th in leap years only.
pub(super) fn date() -> String {
    let fourth = "0[48]|[2468][048]|[13579][26]";
    let leap_year = format!("(?:[0-9]{{2}}(?:{fourth})|(?:00|{fourth})00)");
    let day = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
               |02-(?:0[1-9]|1[0-9]|2[0-8])";
    format!("(?:[0-9]{{4}}-(?:{day})|{leap_year}-02-29)")
}

const HOUR: &str = "(?:[01][0-9]|2[0-3])";
const MINUTE: &str = "[0-5][0-9]";

/// `full-time`. A leap second is surely valid with an offset of whole or half hours and as the last second of a day in
/// UTC.
pub(super) fn time() -> String {
    let Leaps { same_day, next_day } = leaps();
    format!("(?:{}|{same_day}|{next_day})", with_second(MINUTE))
}

/// A `full-time` with any leap second.
pub(super) fn possible_time() -> String {
    with_second("(?:[0-5][0-9]|60)")
}

/// `date-time`. A leap second is surely valid as in [`time`], and where June or December ends in UTC.
pub(super) fn date_time() -> String {
    let Leaps { same_day, next_day } = leaps();
    let last = format!("[0-9]{{4}}-(?:06-30|12-31)[Tt]{same_day}");
    let first = format!("[0-9]{{4}}-(?:07|01)-01[Tt]{next_day}");
    format!("(?:{}[Tt]{}|{last}|{first})", date(), with_second(MINUTE))
}

/// A `date-time` with any leap second, or with the space that section 5.6 lets applications write for the `T`.
pub(super) fn possible_date_time() -> String {
    format!("{}[Tt ]{}", date(), possible_time())
}

/// A `full-time` whose seconds are like `second`.
fn with_second(second: &str) -> String {
    format!(r"{HOUR}:{MINUTE}:{second}(?:\.[0-9]+)?(?:[Zz]|[+-]{HOUR}:{MINUTE})")
}

/// Leap seconds at the end of a day in UTC, by the day that it is where the clock is.
struct Leaps {
    same_day: String,
    next_day: String,
}

fn leaps() -> Leaps {
    let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    let leap = |local: u32, offset: &str| format!(r"{}:60(?:\.[0-9]+)?{offset}", time(local));
    let last = 24 * 60 - 1;
    let mut same_day = vec![leap(last, "(?:[Zz]|[+-]00:00)")];
    let mut next_day = Vec::new();
    for minutes in (30..24 * 60).step_by(30) {
        same_day.push(leap(last - minutes, &format!("-{}", time(minutes))));
        next_day.push(leap(minutes - 1, &format!(r"\+{}", time(minutes))));
    }
    let either = |of: Vec<String>| format!("(?:{})", of.join("|"));
    Leaps { same_day: either(same_day), next_day: either(next_day) }
}

/// `duration`, of appendix A.
pub(super) fn duration() -> String {
    let second = "[0-9]+S";
    let minute = format!("[0-9]+M(?:{second})?");
    let hour = format!("[0-9]+H(?:{minute})?");
    let time = format!("T(?:{hour}|{minute}|{second})");
    let day = "[0-9]+D";
    let month = format!("[0-9]+M(?:{day})?");
    let year = format!("[0-9]+Y(?:{month})?");
    format!("P(?:(?:{day}|{month}|{year})(?:{time})?|{time}|[0-9]+W)")
}
