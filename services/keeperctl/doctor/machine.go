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
				found(warnIf(d.Free >= leastDisk), d.Path,
					fmt.Sprintf("%d MB of %d MB are free", d.Free>>20, d.Total>>20),
					"free space, or give the volume more")
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
