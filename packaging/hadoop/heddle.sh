# A shell profile of Hadoop 3 that adds "yarn heddle …". Put it, or a link to it, into
#   $HADOOP_HOME/libexec/shellprofile.d/   where it outlives changes of the configuration, or
#   $HADOOP_CONF_DIR/shellprofile.d/       where it outlives upgrades of Hadoop.
# The program is $YARN_HEDDLE_PROGRAM, else bin/heddle of the folder this file is (or is linked to) in, else that of the package, else heddle in PATH.
# Every hadoop, hdfs, mapred and yarn command reads this file: it only defines things.

if [[ "${HADOOP_SHELL_EXECNAME}" = yarn ]]; then
  hadoop_add_subcommand "heddle" client "run stream-processing jobs, in YAML or Go, on this cluster"
fi

## @description  Find Heddle's program
## @audience     private
## @stability    evolving
## @replaceable  no
function heddle_program
{
  local profile folder candidate

  if [[ -n "${YARN_HEDDLE_PROGRAM}" ]]; then
    echo "${YARN_HEDDLE_PROGRAM}"
    return
  fi
  profile=$(readlink -f -- "${BASH_SOURCE[0]}")
  folder=$(dirname -- "$(dirname -- "${profile}")")
  for candidate in "${folder}/bin/heddle" /usr/lib/heddle/bin/heddle; do
    if [[ -x "${candidate}" ]]; then
      echo "${candidate}"
      return
    fi
  done
  type -P heddle
}

## @description  Run the heddle command with the configuration of this yarn command, on YARN unless told otherwise
## @audience     public
## @stability    evolving
## @replaceable  no
function yarn_subcommand_heddle
{
  local program

  program=$(heddle_program)
  if [[ ! -x "${program}" ]]; then
    hadoop_error "ERROR: cannot find the program heddle${program:+ at ${program}}: install the package heddle, or set YARN_HEDDLE_PROGRAM to the program's path."
    exit 1
  fi
  export HEDDLE_TARGET="${HEDDLE_TARGET:-yarn}"
  exec "${program}" "$@"
}
