package doctor

import (
	"fmt"
	"time"
)

// How far this machine's clock may be from the chain's: a block is minted for the second it is made in, and arrives
// within two.
const (
	clockAhead  = 2 * time.Second
	headIsOld   = 15 * time.Second
	leastDisk   = 2 << 30  // bytes
	someDisk    = 10 << 30 // bytes
	somePercent = 10       // of the file system
)

func machineChecks() []check {
	return []check{
		{"machine-clock", "machine", false, wrongClock},
		{"chain-stalled", "endpoints", false, stalled},
		{"machine-disk", "machine", false, fullDisk},
		{"machine-growth", "machine", true, filling},
		{"alert-route", "alerts", false, nobodyTold},
		{"alert-manager", "alerts", true, alertmanagerAway},
		{"alert-watchdog", "alerts", true, noWatchdog},
	}
}

func (f *Facts) sinceHead() (time.Duration, bool) {
	head := f.best()
	return f.Machine.Now.Sub(time.UnixMilli(int64(head.TimeMs))), head.TimeMs > 0 && !f.Machine.Now.IsZero()
}

// wrongClock finds a clock that is behind the chain's; one that is ahead looks like a chain that stands still.
func wrongClock(f *Facts) []fault {
	if since, known := f.sinceHead(); known && since < -clockAhead {
		return []fault{{Failure, "", fmt.Sprintf("this machine's clock is %s behind the newest block",
			-since.Round(100*time.Millisecond)), "run chrony or systemd-timesyncd"}}
	}
	return nil
}

func stalled(f *Facts) []fault {
	if since, known := f.sinceHead(); known && since > headIsOld {
		return []fault{{Failure, "", fmt.Sprintf("the newest block of any endpoint is %s old by this machine's clock",
			since.Round(time.Second)), "a block explorer says whether the chain stands, the endpoints are behind, " +
			"or this clock is ahead"}}
	}
	return nil
}

func fullDisk(f *Facts) (found []fault) {
	for _, d := range f.Machine.Disks {
		switch {
		case d.Error != nil:
			found = append(found, fault{Warning, d.Path, "it cannot be asked for its free space: " + d.Error.Error(),
				"correct keeperctl.disks"})
		case d.Free < leastDisk:
			found = append(found, fault{Failure, d.Path, left(d), "free space, or give the volume more"})
		case d.Free < someDisk || d.Free < d.Total/100*somePercent:
			found = append(found, fault{Warning, d.Path, left(d), "free space, or give the volume more"})
		}
	}
	return found
}

// How many days a disk has to last at the pace of the last one.
const (
	leastDays = 3
	someDays  = 14
)

// filling takes each file system for that of Kafka and Postgres.
func filling(f *Facts) (found []fault) {
	if f.Machine.Growth == 0 {
		return nil
	}
	for _, d := range f.Machine.Disks {
		days := d.Free / f.Machine.Growth
		if d.Error != nil || days >= someDays {
			continue
		}
		severity := Warning
		if days < leastDays {
			severity = Failure
		}
		found = append(found, fault{severity, d.Path, fmt.Sprintf("%s, and the log topic and the state have grown by "+
			"%d MB in the last 24 hours: that lasts for %d days", left(d), f.Machine.Growth>>20, days),
			"give the volume more, or move Kafka and Postgres to one that has it"})
	}
	return found
}

func left(d Disk) string {
	const mega = 1 << 20
	return fmt.Sprintf("%d MB of %d MB are free", d.Free/mega, d.Total/mega)
}

func nobodyTold(f *Facts) []fault {
	switch m := f.Machine; {
	case f.Development:
		return nil
	case f.Settings.Monitor && !m.Operator:
		return []fault{{Failure, "", "this is a monitor, and its alarms are told nobody", "set notify.operator_url"}}
	case !m.Operator && !m.Alertmanager:
		return []fault{{Warning, "", "nobody is told when something fails",
			"set notify.operator_url, or what the profile monitoring needs (keeperctl.alertmanager)"}}
	}
	return nil
}

func alertmanagerAway(f *Facts) []fault {
	if f.Machine.AlertsError == nil {
		return nil
	}
	return []fault{{Failure, "", "Alertmanager does not answer: " + f.Machine.AlertsError.Error(),
		"docker compose --profile monitoring up -d"}}
}

func noWatchdog(f *Facts) []fault {
	if !f.Machine.Unwatched {
		return nil
	}
	return []fault{{Failure, "", "Alertmanager answers, and no Watchdog reaches it: nor would any alert of Prometheus",
		"see whether Prometheus runs, has its rules, and reaches Alertmanager: its page /targets and /rules say so"}}
}
