#!/bin/sh
# what the official image does with these variables, as far as the compose file uses it
set -eu
env | sed -n 's/^KAFKA_\([A-Z_]*\)=/\1 /p' | while read -r name value; do
  echo "$(echo "$name" | tr 'A-Z_' 'a-z.')=$value"
done >/tmp/server.properties
java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format --ignore-formatted -t 5L6g3nShT-eMCtK--X86sw -c /tmp/server.properties
exec java -Xmx384m -XX:+UseSerialGC -cp '/opt/kafka/libs/*' kafka.Kafka /tmp/server.properties
