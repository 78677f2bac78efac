package doctor

import (
	"fmt"
	"time"
)

const (
	// How far this machine's clock may be from the chain's: a block is minted for the second it is made in, and arrives
	// within two.
	clockAhead = 2 * time.Second
	headIsOld  = 15 * time.Second

	leastDisk   = 2 << 30  // bytes
	someDisk    = 10 << 30 // bytes
	somePercent = 10       // of the file system
	// How many days a disk has to last at the pace of the last one.
	leastDays = 3
	someDays  = 14
)

var machineChecks = []check{
	// A clock that is behind the chain's; one that is ahead looks like a chain that stands still.
	{"machine-clock", "machine", false, func(f *Facts, found report) {
		if since, known := f.sinceHead(); known && since < -clockAhead {
			found(Failure, "", fmt.Sprintf("this machine's clock is %s behind the newest block",
				-since.Round(100*time.Millisecond)), "run chrony or systemd-timesyncd")
		}
	}},
	{"chain-stalled", "endpoints", false, func(f *Facts, found report) {
		if since, known := f.sinceHead(); known && since > headIsOld {
			found(Failure, "", fmt.Sprintf("the newest block of any endpoint is %s old by this machine's clock",
				since.Round(time.Second)), "a block explorer says whether the chain stands, the endpoints are behind, "+
				"or this clock is ahead")
		}
	}},
	{"machine-disk", "machine", false, func(f *Facts, found report) {
		for _, d := range f.Machine.Disks {
			if d.Error != nil {
				found(Warning, d.Path, "it cannot be asked for its free space: "+d.Error.Error(),
					"correct keeperctl.disks")
			} else if d.Free < max(someDisk, d.Total/100*somePercent) {
				found(warnIf(d.Free >= leastDisk), d.Path, left(d), "free space, or give the volume more")
			}
		}
	}},
	// Each file system is taken for that of Kafka and Postgres.
	{"machine-growth", "machine", true, func(f *Facts, found report) {
		for _, d := range f.Machine.Disks {
			if days := d.Free / max(f.Machine.Growth, 1); f.Machine.Growth > 0 && d.Error == nil && days < someDays {
				found(warnIf(days >= leastDays), d.Path, fmt.Sprintf("%s, and the log topic and the state have grown "+
					"by %d MB in the last 24 hours: that lasts for %d days", left(d), f.Machine.Growth>>20, days),
					"give the volume more, or move Kafka and Postgres to one that has it")
			}
		}
	}},
	{"alert-route", "alerts", false, func(f *Facts, found report) {
		switch m := f.Machine; {
		case f.Development || m.Operator:
		case f.Settings.Monitor:
			found(Failure, "", "this is a monitor, and its alarms are told nobody",
				"name a receiver in [notify], with the audience operator")
		case !m.Alertmanager:
			found(Warning, "", "nobody is told when something fails",
				"name a receiver of the operators in [notify], or set what the profile monitoring needs "+
					"(keeperctl.alertmanager)")
		}
	}},
	{"alert-manager", "alerts", true, func(f *Facts, found report) {
		if err := f.Machine.AlertsError; err != nil {
			found(Failure, "", "Alertmanager does not answer: "+err.Error(),
				"docker compose --profile monitoring up -d")
		}
	}},
	{"alert-watchdog", "alerts", true, func(f *Facts, found report) {
		if f.Machine.Unwatched {
			found(Failure, "", "Alertmanager answers, and no Watchdog reaches it: nor would any alert of Prometheus",
				"see whether Prometheus runs, has its rules, and reaches Alertmanager: its page /targets and /rules "+
					"say so")
		}
	}},
}

func (f *Facts) sinceHead() (time.Duration, bool) {
	head := f.best()
	return f.Machine.Now.Sub(time.UnixMilli(int64(head.TimeMs))), head.TimeMs > 0 && !f.Machine.Now.IsZero()
}

func left(d Disk) string {
	const mega = 1 << 20
	return fmt.Sprintf("%d MB of %d MB are free", d.Free/mega, d.Total/mega)
}
