# bash completion for rdsend, rdrecv, rdpipe and rdcp: options are those of --help
_rdpipe_tools() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --transport) words='auto rdma tcp' ;;
    --checksum) words='none xxh3' ;;
    --device) words=$(ls /sys/class/infiniband 2>/dev/null) ;;
    --remote-path) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    *)
        if [[ $word != -* ]]; then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
        fi
        words=$("$1" --help 2>/dev/null | grep -oE -- '--?[A-Za-z][a-z-]*')
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _rdpipe_tools rdsend rdrecv rdpipe rdcp
