# SPDX-License-Identifier: MIT
# Made by scripts/mkcompletions from the help texts of spyre-exporter.
complete -c spyre-exporter -f
complete -c spyre-exporter -l listen -d 'address to listen on (127.0.0.1:9835); without a HOST it is'
complete -c spyre-exporter -l max-clients -r -d 'connections at a time (32)'
complete -c spyre-exporter -l timeout -r -d 'time for a request and its answer (10)'
complete -c spyre-exporter -l label -r -d 'a label for all samples, such as pod=NAME; may be repeated'
complete -c spyre-exporter -l version -d 'version of this tool'
complete -c spyre-exporter -s h -l help -d 'this text'
complete -c spyre-exporter -n __fish_use_subcommand -a ''
