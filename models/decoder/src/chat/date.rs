//! Dates for chat templates: `strftime_now`.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    year: i64,
    month: usize,
    day: usize,
    /// Days since January 1, 1970.
    since: i64,
}

impl Date {
    /// Today in UTC.
    pub(crate) fn today() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self::of_days((seconds / 86_400) as i64)
    }

    /// The date of a year, month and day; `None` if the date does not exist.
    pub(crate) fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        // Searches the days around a rough estimate.
        let near = (i64::from(year) - 1970) * 365 + (i64::from(year) - 1969) / 4 + i64::from(month) * 30;
        let wanted = (i64::from(year), usize::from(month), usize::from(day));
        (near - 90..near + 60).map(Self::of_days).find(|date| (date.year, date.month, date.day) == wanted)
    }

    /// As
    /// [`civil_from_days`](https://howardhinnant.github.io/date_algorithms.html#civil_from_days).
    fn of_days(since: i64) -> Self {
        // Years begin in March, so that the leap day is the last of its year, and eras of 400 years
        // are alike.
        let days = since + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Self { year, month: month as usize, day: day as usize, since }
    }

    /// Formats the parts of a date like Python's `strftime`.
    pub(crate) fn format(self, format: &str) -> Result<String, Error> {
        let (month, weekday) = (MONTHS[self.month - 1], DAYS[self.since.rem_euclid(7) as usize]);
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(next) = rest.next() {
            if next != '%' {
                text.push(next);
                continue;
            }
            match rest.next() {
                Some('d') => text += &format!("{:02}", self.day),
                Some('m') => text += &format!("{:02}", self.month),
                Some('Y') => text += &self.year.to_string(),
                Some('y') => text += &format!("{:02}", self.year % 100),
                Some('B') => text += month,
                Some('b') => text += &month[..3],
                Some('A') => text += weekday,
                Some('a') => text += &weekday[..3],
                Some('%') => text.push('%'),
                other => {
                    let part = other.map(String::from).unwrap_or_default();
                    let message = format!("strftime_now: %{part} is no part of a date");
                    return Err(Error::new(ErrorKind::InvalidOperation, message));
                }
            }
        }
        Ok(text)
    }
}
