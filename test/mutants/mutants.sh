#!/usr/bin/env bash
# Removes one guard at a time, most of them the sender's, in a copy of the tree, and shows that the suite turns red each time: a guard whose removal
# nobody notices is either not needed or not tested. Prints one line a mutant, and fails if any survives. Arguments choose mutants by a part of their
# name. The hammer is left out: it finds most of them too, but by luck and after minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z -- go.mod go.sum pkg services lab test | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
cd "$copy"

store="./pkg/pg/txstore -run IntentsConform|NoncesConform|LeasesConform|WriteWaits|TakeoverWaits|JudgedAfterTheWait|BackInTime"
failed=0 chosen=0

# mutant <name> <file> <sed script> <go test arguments>
mutant() {
  local name=$1 file=$2 script=$3 arguments=$4 output verdict
  for part in "${wanted[@]}"; do [[ $name == *"$part"* ]] || return 0; done
  chosen=$((chosen + 1))
  cp "$file" "$copy/.original"
  sed -E -i "$script" "$file"
  if cmp -s "$file" "$copy/.original"; then
    verdict="NOT MADE: the guard is no longer where the script looks for it" failed=1
  elif ! output=$(go vet "${arguments%% *}" 2>&1); then
    verdict="NOT MADE: does not compile" failed=1
    echo "$output" | head -5 >&2
  elif output=$(eval "go test -count=1 -failfast -timeout 3m -skip Conform/no_number_and_no_job $(quoted $arguments)" 2>&1); then
    verdict="SURVIVED" failed=1
  elif grep -q '^panic: test timed out' <<<"$output"; then
    verdict="killed: the suite hangs"
  else
    verdict="killed by $(grep -oE -- '--- FAIL: [^ ]+' <<<"$output" | tail -1 | cut -c11-)"
  fi
  printf '%-62s %s\n' "$name" "$verdict"
  cp "$copy/.original" "$file"
}

# quoted protects the pattern of -run from the shell.
quoted() { printf '%q ' "$@"; }

wanted=("$@")

mutant "the lease row is not locked by a write (FOR SHARE)" pkg/pg/txstore/sender_fence.go 's/ FOR SHARE\)/)/' "$store"
mutant "a write does not compare the token" pkg/pg/txstore/sender_fence.go 's/fencing_token = \$3 AND/(fencing_token = $3 OR true) AND/' "$store"
mutant "a claim does not compare the token" pkg/pg/txstore/intent_claim.go 's/l\.fencing_token = \$3 AND/(l.fencing_token = $3 OR true) AND/' "$store"
mutant "a claim does not compare the cursor" pkg/pg/txstore/intent_claim.go 's/AND l\.next_nonce = \$6/AND (l.next_nonce = $6 OR true)/' "$store"
mutant "a taken number is given again" pkg/pg/txstore/intent_claim.go "s/WHERE n\.state = 'RELEASED'/WHERE true/" "$store"
mutant "a filled number is not asked whether it is free" pkg/pg/txstore/intent_replace.go \
  "s/AND n\.state <> 'RELEASED'\)/AND false)/; s/WHERE n\.state = 'RELEASED'/WHERE true/" "$store"
mutant "a new token is not higher" pkg/pg/txstore/lease.go 's/ELSE fencing_token \+ 1 END/ELSE fencing_token END/' "$store"
mutant "a lease is judged by the time before the wait" pkg/pg/txstore/lease.go \
  's/expires_at > clock_timestamp\(\) AND EXISTS \($/expires_at > now() AND EXISTS (/' "$store"
mutant "an intent is finished from any state" pkg/pg/txstore/intent_pending.go 's/t\.state = ANY \(\$9\)/(t.state = ANY ($9) OR true)/' "$store"
mutant "a receipt is recorded in any state" pkg/pg/txstore/intent_pending.go 's/t\.state = ANY \(\$12\)/(t.state = ANY ($12) OR true)/' "$store"
mutant "an intent is skipped from any state" pkg/pg/txstore/intent_queue.go 's/t\.state = ANY \(\$9\)/(t.state = ANY ($9) OR true)/' "$store"
mutant "an intent is finished on any branch (exact block)" pkg/pg/txstore/intent_pending.go \
  '/finishIntent = /,/RETURNING/s/r\.block_hash = w\.block_hash/(r.block_hash = w.block_hash OR true)/' "$store"
mutant "of several receipts some are recorded" pkg/pg/txstore/intent_pending.go 's/OR count\(\*\) = cardinality\(\$4::bytea\[\]\)/OR true/' "$store"
mutant "an attempt follows any other (exact hash)" pkg/pg/txstore/intent_replace.go 's/newest\.hash = \$5/(newest.hash = $5 OR true)/' "$store"
mutant "a cancelled job is executed after all" pkg/pg/txstore/intent_replace.go "s/\(newest\.kind = \\\$7 OR newest\.kind = 'EXEC' AND \\\$7 = 'CANCEL'\)/true/" "$store"
mutant "one account, two liquidations" pkg/pg/migrations/00001_keeper.sql 's/UNIQUE (INDEX tx_intent_liquidation_account)/\1/' "$store"
mutant "one order, two transactions" pkg/pg/migrations/00001_keeper.sql 's/UNIQUE (INDEX tx_intent_key_in_flight)/\1/' "$store"
# Either of the two constraints would do by itself.
mutant "one job, two live attempts" pkg/pg/migrations/00001_keeper.sql 's/UNIQUE (INDEX tx_intent_live_attempt)/\1/; /UNIQUE \(job_id, attempt\),/d' "$store"
mutant "liquidations without a limit" pkg/pg/txstore/intent_claim.go "s/WHERE kind <> 'liquidation' OR slot IS NOT NULL/WHERE true/" "$store"
mutant "a liquidation that is called an order takes no place" pkg/pg/txstore/intent_claim.go "s/AND t\.kind <> 'liquidation'\`/\`/" "$store"
mutant "a database behind the chain is believed" pkg/pg/txstore/lease_takeover.go 's/if identity != nil \|\| latest <= stored\.Next \{/if identity != nil || true {/' "$store"
mutant "another database is believed" pkg/pg/txstore/lease_takeover.go 's/if systemWas == system && timelineWas == timeline \{/if true {/' "$store"
mutant "a lease term outlives a promoted standby" pkg/pg/txstore/lease.go 's/paused_reason IS NOT NULL$/true/' './pkg/pg/txstore -run TestTermEndsInAnotherDatabase'
mutant "an idle signer does not look at a promoted standby" pkg/txmgr/txmanager/term.go 's/cursor\.unverified\.Store\(w\.lost\)/cursor.unverified.Store(false)/' \
  './services/sender -run TestPromotionIsNoticedByWhoeverRuns'
mutant "a signer that nobody holds stays so" services/sender/adoption.go 's/time\.Since\(free\) >= /false \&\& time.Since(free) >= /' \
  './services/sender -run TestSendersWithKeysOfTheirOwn'
mutant "broadcast before it is stored" pkg/txmgr/txmanager/claim.go \
  's/^(\t+)c\.expect\(t\.Tx\.Hash\)$/\1c.expect(t.Tx.Hash)\n\1_ = c.node.SendRaw(ctx, t.Tx.Raw)/' \
  './services/sender -run TestKilledAnywhere/before_claim'
mutant "a raise is broadcast and not stored" pkg/txmgr/txmanager/renew.go \
  's/if err := r\.store\.Replace\(ctx, r\.term\.Fence\(\), next\); err != nil \{/_ = next\n\tif err != nil {/' \
  './services/sender -run TestTrouble/nodes_want_more'
mutant "a number is given to what may not pay" pkg/txmgr/txmanager/claim.go 's/if !fee\.Pays\(lane, t\.Call\.Gas, paid\) \{/if false {/' \
  './pkg/txmgr/txmanager -run TestNoNonceForWhoMayNotPay'
mutant "what may not pay is looked at all the same" pkg/txmgr/txmanager/pays.go 's/case !fee\.Pays\(lane, txm\.EmptyGas, paid\):/case !fee.Pays(lane, 0, txm.Market{}):/' \
  './pkg/txmgr/txmanager -run TestWhoMayNotPayWaits'
mutant "what is in the way inherits nothing" pkg/txmgr/txm/urgency.go 's/Above\(behind, own\) \{/Above(behind, own) \&\& false {/' './pkg/txmgr/txm -run TestInherit'
mutant "what is in the way is not pressed" pkg/txmgr/txm/next.go 's/p\.Of\(s\.For\(f\)\)\.Patience/p.Of(f.Intent.Job.Kind.Lane()).Patience/' \
  './pkg/txmgr/txm -run TestInheritedPatience'
mutant "what no node has is raised" pkg/txmgr/txm/next.go 's/s\.Sent\.Answer == Pooled \&\& s\.passed/s.passed/' './pkg/txmgr/txm -run TestNext'
mutant "what nodes refuse is offered as often as ever" pkg/txmgr/txm/next.go 's/pause := resend << .*$/pause := uint64(resend + 0*longest)/' \
  './pkg/txmgr/txm -run TestRefusalsSlowThemselvesDown'
mutant "an endpoint that refuses everything is good" pkg/evm/endpoint.go 's/if run\.add\(now\) \&\& /if run.add(now) \&\& false \&\& /' \
  './pkg/evm -run TestErrorsAloneAreNoAnswers'
mutant "a redirect of an endpoint is followed" pkg/evm/endpoint.go 's/, CheckRedirect: stay//' './pkg/evm -run TestNothingIsTakenElsewhere'
mutant "a lost claim is not looked up" pkg/txmgr/txmanager/claim.go 's/if err := c\.lookUp\(ctx, tasks\[0\], err\); err != nil \{/if false {/' \
  './services/sender -run TestTrouble/the_answer_to_a_claim'

mutant "the turn is not asked again before the claim" pkg/txmgr/txmanager/drain.go \
  '/^func \(d \*drain\) stillOurs/,/^}/s/if v\.Kind == Proceed \{/if v.Kind >= Proceed {/' './pkg/txmgr/txmanager -run TestDrainClaimsNothingLate'
mutant "a raise does not ask the gate" services/sender/preflight/check.go \
  's/err != nil \|\| v\.Kind != txmanager\.Proceed/err != nil \&\& v.Kind == 99/' './services/sender/preflight -run TestRecheckAsksTheGate'
mutant "an adoption does not ask the gate" pkg/txmgr/txmanager/renew.go 's/if p\.closed \&\& f\.Newest\(\)\.Sends == 0 \{/if false {/' \
  './pkg/txmgr/txmanager -run TestAdoptionAsksTheGate'
mutant "a job is pressed in another tier's window" pkg/txmgr/txm/next.go 's/case s\.Over \&\& !f\.Leaving\(\):/case false:/' './pkg/txmgr/txm -run TestNextOfAnothersWindow'
mutant "a delay is counted by the clock that somebody sets" services/sender/turns/turns.go \
  's/t\.cfg\.Clock\(\)\.Sub\(t\.began\)\./t.cfg.Clock().Round(0).Sub(t.began)./' './services/sender/turns -run TestDelayOutlivesAClockStep'
mutant "a tier without a turn is accepted" pkg/tier/config.go 's/add\(round > turns,/add(round > turns+job.SaidEvery,/' './pkg/tier -run TestEveryTierHasATurn'
mutant "a price-born job's life never ends" pkg/tier/turn.go 's/LifeEndsMs: j\.LifeEndsMs\(\)/LifeEndsMs: 0/' \
  './services/sender/turns -run TestWordOfARenewalComesLate'
mutant "a life that is over has an owner" pkg/tier/turn.go 's/j\.LifeEndsMs > 0 \&\& nowMs >= j\.LifeEndsMs/false/' './pkg/tier -run TestLifeEnds'
mutant "the last window of a life is not cut" pkg/tier/turn.go 's/next = min\(next, j\.LifeEndsMs\)/next += 0/' './pkg/tier -run TestLifeEnds'
mutant "a stored life that is over never ends" services/sender/turns/ask.go 's/case t\.lapsed\(turn\):/case false:/' \
  './services/sender/turns -run TestStoredLifeThatIsOverEnds'
mutant "a stranger's nonce is not seen" pkg/txmgr/txmanager/external_use.go 's/sure \&\& next > given/sure \&\& next > given+99/' './pkg/txmgr/txmanager -run TestExternalUseIsSeen'
mutant "one endpoint's word makes a stranger" pkg/txmgr/txmanager/external_use.go 's/sure \&\& next > given/(sure || true) \&\& next > given/' './pkg/txmgr/txmanager -run TestExternalUseIsSeen'
mutant "one host's word loses a nonce" pkg/txmgr/txmanager/confirm.go 's/agree < need \{/false \&\& agree < need {/' './pkg/txmgr/txmanager -run TestOneHostLosesNoNonce'
mutant "an unverified cursor is not read anew" pkg/txmgr/txmanager/cursor.go 's/if c\.unverified\.Swap\(false\) \{/if false {/' './pkg/txmgr/txmanager -run TestUnverifiedCursorIsReadAnew'
mutant "a stranger's nonce does not pause the signer" pkg/txmgr/txmanager/cursor.go \
  's/return c, errors\.Join\(err, w\.Intents\.Pause\(ctx, f, err\.Error\(\)\)\)/return c, errors.Join(err)/' './services/sender -run TestSameKeyInTwoRegions'
mutant "what is private goes to everybody" pkg/txmgr/txmanager/private.go 's/return max\(until\.Sub\(p\.clock\(\)\), 0\)$/return 0/' \
  './pkg/txmgr/txmanager -run TestPrivateUntilTheDeadline'
mutant "what is private never goes to everybody" pkg/txmgr/txmanager/private.go 's/return max\(until\.Sub\(p\.clock\(\)\), 0\)$/return max(until.Sub(p.clock()), time.Hour)/' \
  './pkg/txmgr/txmanager -run TestPrivateUntilTheDeadline'
mutant "a broken lease keeps its token" pkg/pg/txstore/lease.go 's/fencing_token = fencing_token \+ 1, expires_at/expires_at/' './pkg/pg/txstore -run TestBrokenLeaseFencesItsHolder'
mutant "another lease term than the one that was seen is broken" pkg/pg/txstore/lease.go \
  '/-infinity/,/WHERE/s/owner = \$2 AND fencing_token = \$3 AND/(owner = $2 AND fencing_token = $3 OR true) AND/' './pkg/pg/txstore -run TestBrokenLeaseFencesItsHolder'
mutant "retries come all after two seconds" pkg/txmgr/txm/retry.go 's/return firstRetry << tries/return firstRetry/' \
  './pkg/txmgr/txmanager -run TestRetriesComeAfterTwoFourAndEightSeconds'
mutant "a poisoned job rests no longer each time" pkg/txmgr/txm/retry.go 's/case o == job\.Reverted \&\& tries >= Retries:/case false:/' './pkg/txmgr/txm -run TestPoisonedJobIsSeldomSent'
mutant "the emergency key signs for any contract" pkg/operator/emergency/allowed.go 's/if to != a\.To \|\| /if /' './pkg/operator/emergency -run TestMaySign'
mutant "the emergency key signs though it is off" services/keeperctl/emergency_means.go 's/if len\(own\.Calls\) == 0 \{/if false {/' './services/keeperctl -run TestEmergencyIsSent'
mutant "a receipt that two endpoints do not have ends a job" pkg/txmgr/txmanager/looks.go 's/case block != r\.Block\.Hash \|\| ok != r\.OK:/case false:/' \
  './pkg/txmgr/txmanager -run TestDisputedReceiptsEndNothing'
mutant "one of a batch that has moved on keeps all from being stored" pkg/txmgr/txmanager/looks.go 's/case len\(looks\) == 1:/case len(looks) >= 1:/' \
  './pkg/txmgr/txmanager -run TestWhatHasMovedOnIsLeftOut'
mutant "one host's word is enough" pkg/evm/agreement/agreement.go 's/return min\(2, hosts\)/return min(1, hosts)/' './pkg/evm -run TestSettledNonceTakesTwo'

# Nothing urgent waits behind anything slower (LIQ-19), and money follows evidence (NON-16).
room="./pkg/txmgr/txmanager -run"
mutant "what waits is asked again before all others were" pkg/txmgr/txmanager/deferred.go \
  's/return slices\.Collect\(maps\.Keys\(p\.deferrals\)\)/p.nextRound()\n\treturn slices.Collect(maps.Keys(p.deferrals))/; s/int64 \{ p\.next/int64 {\n\tp.next/' "$room TestWaitingTasksStarveNobody"
mutant "a check that fails for ever never ends" pkg/txmgr/txmanager/drain.go 's/lease\.Lost\(s\.err\) \|\| d\.waited\(i\) < d\.maxWait/true/' "$room TestFailingChecksEnd"
mutant "what is urgent has no room of its own" pkg/txmgr/txmanager/drain.go 's/pick\.Limit <= 0 \&\& !d\.slotsFull \{/false {/' "$room TestSlowCallsHoldNobody"
mutant "what is launched ends with its pass" pkg/txmgr/txmanager/drain.go 's/d\.process\(ctx, steps\)/d.process(checking, steps)/' "$room TestSlowCallsHoldNobody"
mutant "a pass that never ends counts nothing" pkg/txmgr/txmanager/drain.go 's/d\.busy\(\) == 0 \|\| since >= 0 \&\& since < idle/since < 2*since+1/' "$room TestEndlessPassCounts"
mutant "a slow signer signs one at a time" pkg/txmgr/txmanager/claim.go 's/var group errgroup\.Group/&; group.SetLimit(1)/' "$room TestSlowSignerHoldsNobody"
mutant "what waits behind our own is raised" pkg/txmgr/txmanager/market.go 's/if paid <= price \{/if paid < 0 {/' "$room TestOurOwnCrowdIsNoReasonToRaise"
mutant "what others pay is no reason to raise" pkg/txmgr/txmanager/market.go 's/(policy\.Asks\(l, \*m\.known\)) > price/\1 < 0/' "$room TestOurOwnCrowdIsNoReasonToRaise"
mutant "what cannot be decided makes no way" pkg/txmgr/txmanager/renew.go 's/case !ready \&\& s\.CancelsForUrgent\(f\):/case err == nil \&\& !ready \&\& s.CancelsForUrgent(f):/' "$room TestWhatCannotGoOnMakesWay"
mutant "what cannot be paid for makes no way" pkg/txmgr/txmanager/renew.go 's/if s\.CancelsForUrgent\(f\) \&\& r\.broadcast\.poor.*\{/if false {/' "$room TestWhatCannotGoOnMakesWay"
mutant "a receipt may burn anything" pkg/txmgr/txmanager/looks.go 's/min\(r\.GasUsed, signed\.Gas\)/r.GasUsed/' "$room TestReceiptBurnsNoMoreThanWasSigned"
mutant "what was paid by us is a market" pkg/txmgr/txmanager/market.go 's/^\treturn ours$/\treturn ours \&\& false/' "$room TestKeeperDoesNotOutbidItself"
mutant "what costs no more than before needs money" pkg/txmgr/txm/money.go 's/return wei\.IsZero\(\) \|\| /return /' './pkg/txmgr/txm -run TestBudget'
mutant "a signer that refuses is not told" pkg/txmgr/txmanager/claim.go 's/Reason: err\.Error\(\), Shown: true/Reason: err.Error()/' "$room TestClaimLeavesOutWhatIsRefused"

# A signer that cannot sign is a signer that is not there (NON-15).
mutant "a signer that is out keeps the keeper's slots" pkg/pg/txstore/intent_claim.go 's/f\.signer NOT IN ` \+/true OR f.signer NOT IN ` +/' "$store"
mutant "one that is out has no slots of its own" pkg/pg/txstore/intent_claim.go 's/\(f\.signer = \$1 OR f\.signer/(f.signer/' "$store"
mutant "a signer that nobody works is thought to be there" pkg/pg/out_signers.go 's/ OR ` \+ SignerUnheld \+ `\)`/)`/' './pkg/pg/txstore -run TestSignersAreOut'
mutant "jobs go to a signer that is out" pkg/job/route.go 's/if len\(here\) > 0 \{/if len(here) < 0 {/' './services/planner -run TestSignersThatAreOutArePassedBy'
mutant "nobody tells of a queue that nobody works" services/sender/paused.go 's/\(idle \|\| !s\.Unheld\)/(idle || s.Unheld || true)/' './services/sender -run TestNobodysQueueIsTold'
mutant "bytes that may still land are written off unasked" services/keeperctl/write_off.go 's/from == nil \|\| \*from != l\.Next/false/' './services/keeperctl -run TestSignerWriteOff'
mutant "every nonce of a signer that is written off is spent" services/keeperctl/write_off.go 's/f\.Intent\.Nonce < l\.Next\}/true}/' './services/keeperctl -run TestSignerWriteOff'

# Nothing unproven is published (PIPE-13).
mutant "receipts are published unproven" pkg/evm/receipt.go 's/root != block\.ReceiptsRoot/len(root) == 0/' './pkg/evm -run TestLiarsAreExcluded'
mutant "receipts that come early are published unproven" pkg/evm/early.go 's/root != block\.ReceiptsRoot/len(root) == 0/' './pkg/evm -run TestEarlyLiesAreNotBelieved'

# Faults that others met in public.
mutant "a dead HTTP/2 connection is not found by pings" pkg/transport/http.go '/SendPingTimeout/d' './pkg/transport -run TestDeadConnectionsAreLeft'
mutant "a mute connection is not left" pkg/transport/conn.go 's/time\.AfterFunc\(c\.dialer\.patience\(\), c\.look\)/_ = c.look/' './pkg/pg -run TestWire'
mutant "a server that refuses a write is kept" pkg/pg/connect.go 's/refused\.Code == codeReadOnly/false/' './pkg/pg -run TestRefusedWriteLeavesTheServer'
mutant "who asks at once fills a generation of his own" pkg/operator/generation/generation.go 's/(return db\.AddGeneration\(ctx, ).*/\1nil)/' \
  './pkg/operator/generation -run TestOneFillingForAll'
mutant "a second state begins on a full disk" services/keeperctl/snapshot.go 's/err := r\.room\(ctx\); err/err := error(nil); err/' \
  './services/keeperctl -run TestNoSecondStateOnAFullDisk'
mutant "an unknown event of administration stops a partition" pkg/gmx/unknown.go 's/items\)\.item; unknown\.Item != ""/items).item; true/' './services/statevm -run TestUnknownEvents'

[ "$chosen" -gt 0 ] || { echo "no mutant is called so: $*" >&2; exit 2; }
exit "$failed"
