# bash completion for rdsend, rdrecv, rdpipe and rdcp
_rdpipe_tools() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options
    local -a common=(--transport --device --encrypt --sign --plain --checksum --timeout
        --idle-timeout --connect-timeout --chunk --credits --json -v --verbose --help
        --version)
    case $before in
    --transport) mapfile -t COMPREPLY < <(compgen -W 'auto rdma tcp' -- "$word"); return ;;
    --checksum) mapfile -t COMPREPLY < <(compgen -W 'none xxh3' -- "$word"); return ;;
    --device)
        options=$(ls /sys/class/infiniband 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
        ;;
    --remote-path) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    esac
    case ${1##*/} in
    rdsend) common+=(--key-file --key-fd --bind --rate --finish-timeout --no-progress) ;;
    rdrecv) common+=(--key-file --key-fd --new-key --bind --sync --announce-fd
        --port --no-progress) ;;
    rdpipe) common+=(--ssh --remote-path --via --port --dial-back --via-ssh --rate
        --finish-timeout --sync --wait) ;;
    rdcp) common+=(--ssh --remote-path --via --port --dial-back --via-ssh --rate
        -r --recursive --archive --verify --no-sync -H --hard-links -X --xattrs -A
        --acls --hash --manifest --check --exclude --delete --yes --dry-run --retry
        --bwlimit) ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${common[*]}" -- "$word")
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _rdpipe_tools rdsend rdrecv rdpipe rdcp
