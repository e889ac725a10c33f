"""The changes that the demo streams: each flight is announced, and then flown or cancelled."""

from pathlib import Path

from demo.changes import read_day

TITLES = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)
FLOWN = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01 05:00:00"
CANCELLED = "2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,16,30,2013-01-01 16:00:00"
NEXT_DAY = "2013,1,2,42,2359,43,518,442,36,B6,707,N580JB,JFK,SJU,189,1598,23,59,2013-01-02 23:00:00"


def test_the_changes_of_the_first_day(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    path.write_text(f"{TITLES}\n{FLOWN}\n{CANCELLED}\n{NEXT_DAY}\n")
    day = read_day(path)
    assert [(row["carrier"], row["flight"], row["arr_delay"]) for row in day.flights] == [
        ("UA", 1545, 11),
        ("EV", 4308, None),
    ]
    announced, changed = list(day.announced()), list(day.changed())
    assert [operation for operation, _ in announced] == ["INSERT", "INSERT"]
    assert (
        announced[0][1]["after"] | {"dep_time": 517, "dep_delay": 2, "arr_time": 830, "arr_delay": 11} == day.flights[0]
    )
    assert announced[0][1]["after"]["arr_delay"] is None
    assert changed == [("UPDATE", {"after": day.flights[0]}), ("DELETE", {"before": day.flights[1]})]
