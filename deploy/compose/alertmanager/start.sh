#!/bin/sh
# Puts the env file's values in their place and starts Alertmanager. What is not set is named at once: an alert that reaches nobody is worse than none.
set -eu

for name in SMTP_HOST SMTP_PORT SMTP_FROM SMTP_USER REPORT_TO RUNBOOKS_URL; do
  eval "value=\${$name:-}"
  if [ -z "$value" ]; then
    echo "alertmanager: $name is not set: set it in the env file of the region" >&2
    exit 2
  fi
done
for pair in slack_url:SLACK_URL_FILE pagerduty_key:PAGERDUTY_KEY_FILE smtp_password:SMTP_PASSWORD_FILE; do
  if [ ! -s "/run/secrets/${pair%%:*}" ]; then
    echo "alertmanager: ${pair##*:} names no file with something in it that uid $(id -u) may read: set it in the env file of the region" >&2
    exit 2
  fi
done

# Who hears of the Watchdog is outside, and each region's choice.
watchdog='/# watchdog/d'
if [ -s /run/secrets/watchdog_url ]; then
  watchdog="s|https://watchdog.invalid/|$(sed 's/[\\|&]/\\&/g' /run/secrets/watchdog_url)|"
fi

umask 077 # that address is a secret
sed -e "$watchdog" -e "s|\${SMTP_HOST}|$SMTP_HOST|" -e "s|\${SMTP_PORT}|$SMTP_PORT|" -e "s|\${SMTP_FROM}|$SMTP_FROM|" -e "s|\${SMTP_USER}|$SMTP_USER|" \
  -e "s|\${REPORT_TO}|$REPORT_TO|" /etc/alertmanager/alertmanager.yml >/tmp/alertmanager.yml
exec /bin/alertmanager --config.file=/tmp/alertmanager.yml --storage.path=/alertmanager --cluster.listen-address= --web.external-url="$ALERTMANAGER_URL" --web.route-prefix=/
