# Asks the Message Queuing of this Windows machine, and an rpcqm, what only Windows can tell, and
# writes the answers to one text file, which has no name of a user, a computer or a domain, no
# address, no SID and no GUID. docs/windows-check.md says how it is used and what its lines mean.
#
#     powershell -ExecutionPolicy Bypass -File check.ps1 -Server HOST
#
# On HOST "scripts/windows-check --serve" runs meanwhile. -Me is the name or address by which HOST
# reaches this machine, -Http the port of its messages over HTTP. For Windows PowerShell 5.1.

param(
    [Parameter(Mandatory = $true)][string]$Server,
    [string]$Me = '',
    [int]$Http = 80,
    [string]$File = 'windows-check.txt'
)

$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Messaging

$lines = New-Object System.Collections.ArrayList
$hidden = New-Object System.Collections.ArrayList
$none = [System.Reflection.Missing]::Value
$moment = [TimeSpan]::FromSeconds(20)
$ascii = [System.Text.Encoding]::ASCII
$plainCulture = [System.Globalization.CultureInfo]::InvariantCulture
$ignoreCase = [System.Text.RegularExpressions.RegexOptions]::IgnoreCase
if ($Me -eq '') { $Me = [System.Net.Dns]::GetHostName() }

function Get-Direct([string]$machine) {
    if ($machine -match '^[0-9.]+$') { return 'DIRECT=TCP:' + $machine }
    return 'DIRECT=OS:' + $machine
}

$there = (Get-Direct $Server) + '\private$\wcheck-'
$back = (Get-Direct $Me) + '\private$\wcheck-'
$own = '.\private$\wcheck-'

# Answers, and what must not be in them

function Add-Hidden([string]$text, [string]$word) {
    if ($text.Length -lt 2) { return }
    $pattern = '(?<![A-Za-z0-9])' + [regex]::Escape($text) + '(?![A-Za-z0-9])'
    [void]$hidden.Add(@($pattern, $word))
}

function Hide-Names([string]$text) {
    foreach ($pair in $hidden) {
        $text = [regex]::Replace($text, $pair[0], $pair[1], $ignoreCase)
    }
    $text = [regex]::Replace($text, 'S-1-[0-9]+(-[0-9]+)+', 'SID')
    $text = [regex]::Replace($text, '[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}', 'GUID')
    $text = [regex]::Replace($text, '[0-9]{1,3}(\.[0-9]{1,3}){3}', 'ADDRESS')
    $text = [regex]::Replace($text, '[0-9A-Fa-f:]*::[0-9A-Fa-f:]*(%[0-9]+)?', 'ADDRESS')
    $text = [regex]::Replace($text, '([0-9A-Fa-f]{1,4}:){4,}[0-9A-Fa-f]{1,4}', 'ADDRESS')
    return [regex]::Replace($text, '[^ -~]', '?')
}

function Get-Code($failure) {
    $exception = $failure.Exception
    while ($null -ne $exception.InnerException) { $exception = $exception.InnerException }
    if ($exception.Message -eq 'not-asked') { return 'not-asked' }
    if ($exception -is [System.Messaging.MessageQueueException]) {
        return '0x{0:X8}' -f [int]$exception.MessageQueueErrorCode
    }
    return '0x{0:X8} {1}' -f [int]$exception.HResult, $exception.GetType().Name
}

function Add-Answer([string]$question, [string]$of, $found) {
    if ($found -is [array]) { $found = $found[-1] }
    if ($null -eq $found) { $found = 'nothing' }
    $text = Hide-Names ([string]$found)
    if ($text.Length -gt 4000) { $text = 'not-asked too-long' }
    [void]$lines.Add($question + ' ' + $of + ' ' + $text)
    Write-Host ($question + ' ' + $of + ' ' + $text)
}

function Ask([string]$question, [string]$of, [scriptblock]$step) {
    try { $found = & $step } catch { $found = Get-Code $_ }
    Add-Answer $question $of $found
}

function Get-Text($value) {
    $escaped = ''
    foreach ($unit in ([string]$value).ToCharArray()) {
        $number = [int]$unit
        if (($number -lt 33) -or ($number -gt 126) -or ($number -eq 92)) {
            $escaped = $escaped + ('\u{0:x4}' -f $number)
        } else {
            $escaped = $escaped + $unit
        }
    }
    return $escaped
}

function Get-Hex([byte[]]$octets) {
    if (($null -eq $octets) -or ($octets.Length -eq 0)) { return '-' }
    return [BitConverter]::ToString($octets).Replace('-', '')
}

function Get-Said($value) {
    if ($null -eq $value) { return 'nothing' }
    $type = $value.GetType().Name
    if ($value -is [byte[]]) { return 'value ' + $type + ' ' + (Get-Hex $value) }
    if ($value -is [datetime]) {
        $text = $value.ToString('yyyy-MM-ddTHH:mm:ss', $plainCulture) + ',' + $value.Kind
        return 'value ' + $type + ' ' + $text
    }
    if ($value -is [guid]) { return 'value ' + $type + ' ' + $value.ToString('N') }
    if ($value -is [array]) { return 'value ' + $type + ' ' + ($value -join ',') }
    $text = [Convert]::ToString($value, $plainCulture)
    if ($text -eq '') { return 'value ' + $type + ' -' }
    return 'value ' + $type + ' ' + (Get-Text $text)
}

function Get-YesNo($value) {
    if ($value) { return 'yes' }
    return 'no'
}

function Add-Names {
    # Longer names first, so that none is left in part.
    $names = @($Server, $Me, $env:COMPUTERNAME, $env:USERNAME, $env:USERDOMAIN, $env:USERDNSDOMAIN)
    $names = $names + @($env:USERPROFILE, [System.Net.Dns]::GetHostName())
    foreach ($machine in $Server, $Me) {
        try {
            $entry = [System.Net.Dns]::GetHostEntry($machine)
            $names = $names + $entry.HostName
            $names = $names + $entry.HostName.Split('.')[0]
            foreach ($address in $entry.AddressList) { $names = $names + $address.ToString() }
        } catch {
            Write-Host 'one of the two machines has no name that can be looked up'
        }
    }
    foreach ($name in $names | Where-Object { $_ } | Sort-Object -Property Length -Descending) {
        Add-Hidden $name 'NAME'
    }
}

function Add-About([string]$name, [scriptblock]$step) {
    try { $found = & $step } catch { $found = 'unknown' }
    [void]$lines.Add('about ' + $name + ' ' + (Hide-Names ([string]$found)))
}

function Add-Machine {
    $version = [Environment]::OSVersion.Version
    Add-About 'windows' { '' + $version.Major + '.' + $version.Minor + '.' + $version.Build }
    $shell = $PSVersionTable.PSVersion
    Add-About 'powershell' { '' + $shell.Major + '.' + $shell.Minor }
    Add-About 'runtime' { '' + [Environment]::Version.Major + '.' + [Environment]::Version.Minor }
    Add-About 'domain' {
        $key = 'HKLM:\SOFTWARE\Microsoft\MSMQ\Parameters'
        $workgroup = (Get-ItemProperty -Path $key -Name Workgroup).Workgroup
        if ($workgroup -eq 1) { 'no' } else { 'yes' }
    }
    Add-About 'web' { Get-YesNo (Test-Path -Path 'HKLM:\SOFTWARE\Microsoft\InetStp') }
}

function Start-Part([string]$name, [scriptblock]$part) {
    Write-Host ('--- ' + $name)
    try { [void](& $part) } catch { [void]$lines.Add('# ' + $name + ' stopped: ' + (Get-Code $_)) }
}

function Remove-Queues([string]$of) {
    [void](New-Thing $of 'MSMQQueueInfo')
    $names = 'one', 'a,b', 'label', 'type', 'new', 'going', 'bodies', 'steps', 'small', 'reports'
    $names = $names + @('purged', 'deleted', 'late', 'idle', 'kept', 'taken', ('x' * 118))
    $names = $names + @([string][char]0xE4, [string][char]0xDF)
    if ($of -eq 'windows') {
        $names = $names + @('verdicts', 'told', 'plain', 'stream', 'full', 'closed', 'signed')
        $names = $names + @('private', 'web', 'moves', 'other')
    }
    foreach ($name in $names) {
        try { [void](Call-Method (New-Info $of $name) 'Delete') } catch { Write-Verbose $name }
    }
}

. (Join-Path $PSScriptRoot 'objects.ps1')
. (Join-Path $PSScriptRoot 'messaging.ps1')
. (Join-Path $PSScriptRoot 'local.ps1')

Add-Names
[void]$lines.Add('rpcqm-windows-check 1')
Add-Machine
Start-Part 'formatters' { Ask-Formatters }
Start-Part 'objects here' { Ask-Objects 'windows' }
Start-Part 'this machine alone' { Ask-Machine }
Start-Part 'objects there' { Ask-Objects 'rpcqm' }
Start-Part 'messages both ways' { Ask-Exchange }
Start-Part 'reading there' { Ask-RemoteReads }
Start-Part 'messages over HTTP' { Ask-Web }
Start-Part 'cleaning up here' { Remove-Queues 'windows' }
Start-Part 'cleaning up there' { Remove-Queues 'rpcqm' }
[void]$lines.Add('end ' + $lines.Count)
Set-Content -Path $File -Value $lines -Encoding Ascii
Write-Host ('The answers are in ' + $File + '. Look through it before you give it away.')
