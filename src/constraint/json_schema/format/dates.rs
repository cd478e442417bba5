//! Dates, times and durations of RFC 3339.

/// `full-date`: months have their lengths, and February a 29th in leap years only.
pub(super) fn date() -> String {
    let fourth = "0[48]|[2468][048]|[13579][26]";
    let leap_year = format!("(?:[0-9]{{2}}(?:{fourth})|(?:00|{fourth})00)");
    let day = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
               |02-(?:0[1-9]|1[0-9]|2[0-8])";
    format!("(?:[0-9]{{4}}-(?:{day})|{leap_year}-02-29)")
}

/// `full-time`. Bounded: a leap second has an offset of whole or half hours, and is the last one of a day in UTC.
pub(super) fn time() -> String {
    let hour = "(?:[01][0-9]|2[0-3])";
    let minute = "[0-5][0-9]";
    let plain = format!(r"{hour}:{minute}:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-]{hour}:{minute})");
    // In UTC it is 23:59:60; ahead of it by as much as the clock is past midnight, behind it by the rest of the day.
    let mut leaps = vec![r"23:59:60(?:\.[0-9]+)?[Zz]".to_owned()];
    for half in 0..48 {
        let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
        let local = time(half * 30 + 24 * 60 - 1);
        let (ahead, behind) = (time(half * 30), time((48 - half) * 30));
        leaps.push(format!(r"{local}:60(?:\.[0-9]+)?(?:\+{ahead}|-{behind})"));
    }
    format!("(?:{plain}|{})", leaps.join("|"))
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
