#!/bin/sh
# `lakewarden ARGUMENTS`; or, as Spark on Kubernetes starts executors (`executor` and variables SPARK_*), an executor.
set -eu
[ "${1:-}" = executor ] || exec lakewarden "$@"

spark_home=$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
# SPARK_JAVA_OPT_0, _1, …: one option of the JVM each
set --
i=0
while eval "option=\${SPARK_JAVA_OPT_$i:-}" && [ -n "$option" ]; do
  set -- "$@" "$option"
  i=$((i + 1))
done
exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$spark_home/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
